// SPDX-License-Identifier: Apache-2.0
/// NVML's functions as programs call them; their names, arguments and answers are NVIDIA's.
#include "ground/platform/nvml.h"
#include "softgpu/nvml/session.h"

namespace firebreak::softgpu {
namespace {

using abi::nvmlDevice_t;
using abi::nvmlEventSet_t;
using abi::nvmlReturn_t;

constexpr unsigned long long supported_events =
    abi::nvmlEventTypeXidCriticalError | abi::nvmlEventTypeDoubleBitEccError;
/// What NVML says of the instances of a GPU that MIG has not divided.
constexpr unsigned int no_instance = 0xffffffff;

NvmlSession& session() { return NvmlSession::of_process(); }

/// The one GPU's handle.
nvmlDevice_t device_0() {
  static char place;
  return reinterpret_cast<nvmlDevice_t>(&place);
}

/// SUCCESS where NVML runs, `device` is its GPU and there is room for the answer.
nvmlReturn_t check(nvmlDevice_t device, const void* into) {
  if (!session().gpu()) return abi::NVML_ERROR_UNINITIALIZED;
  return device == device_0() && into != nullptr ? abi::NVML_SUCCESS : abi::NVML_ERROR_INVALID_ARGUMENT;
}

}  // namespace

extern "C" {

nvmlReturn_t nvmlInit_v2();
nvmlReturn_t nvmlInit_v2() { return session().init(); }

nvmlReturn_t nvmlShutdown();
nvmlReturn_t nvmlShutdown() { return session().shutdown(); }

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int* count);
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int* count) {
  const nvmlReturn_t status = check(device_0(), count);
  if (status == abi::NVML_SUCCESS) *count = 1;
  return status;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t* device);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t* device) {
  const nvmlReturn_t status = check(device_0(), device);
  if (status != abi::NVML_SUCCESS) return status;
  if (index != 0) return abi::NVML_ERROR_INVALID_ARGUMENT;
  *device = device_0();
  return abi::NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int* index);
nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int* index) {
  const nvmlReturn_t status = check(device, index);
  if (status == abi::NVML_SUCCESS) *index = 0;
  return status;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, abi::nvmlMemory_t* memory);
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, abi::nvmlMemory_t* memory) {
  const nvmlReturn_t status = check(device, memory);
  const auto gpu = session().gpu();
  if (status != abi::NVML_SUCCESS || !gpu) return status;
  *memory = {gpu->total_bytes(), gpu->total_bytes() - gpu->used_bytes(), gpu->used_bytes()};
  return abi::NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int* count,
                                                     abi::nvmlProcessInfo_t* processes);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int* count,
                                                     abi::nvmlProcessInfo_t* processes) {
  const nvmlReturn_t status = check(device, count);
  const auto gpu = session().gpu();
  if (status != abi::NVML_SUCCESS || !gpu) return status;
  const auto all = gpu->processes();
  const unsigned int room = *count;
  *count = static_cast<unsigned int>(all.size());
  if (room < all.size()) return abi::NVML_ERROR_INSUFFICIENT_SIZE;
  for (const GpuProcess& process : all) {
    *processes++ = {static_cast<unsigned int>(process.pid), process.used_bytes, no_instance, no_instance};
  }
  return abi::NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t* set);
nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t* set) {
  const nvmlReturn_t status = check(device_0(), set);
  return status == abi::NVML_SUCCESS ? session().create_set(set) : status;
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long* event_types);
nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long* event_types) {
  const nvmlReturn_t status = check(device, event_types);
  if (status == abi::NVML_SUCCESS) *event_types = supported_events;
  return status;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long event_types,
                                      nvmlEventSet_t set);
nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long event_types,
                                      nvmlEventSet_t set) {
  const nvmlReturn_t status = check(device, set);
  if (status != abi::NVML_SUCCESS) return status;
  if ((event_types & ~supported_events) != 0) return abi::NVML_ERROR_NOT_SUPPORTED;
  const auto found = session().set(set);
  if (!found) return abi::NVML_ERROR_INVALID_ARGUMENT;
  found->listen(event_types);
  return abi::NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, abi::nvmlEventData_t* data, unsigned int timeout_ms);
nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, abi::nvmlEventData_t* data, unsigned int timeout_ms) {
  const nvmlReturn_t status = check(device_0(), data);
  if (status != abi::NVML_SUCCESS) return status;
  const auto found = session().set(set);
  if (!found) return abi::NVML_ERROR_INVALID_ARGUMENT;
  const auto event = found->wait(Milliseconds(timeout_ms));
  if (!event) return abi::NVML_ERROR_TIMEOUT;
  *data = {device_0(), event->type, event->data, no_instance, no_instance};
  return abi::NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set);
nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
  const nvmlReturn_t status = check(device_0(), set);
  return status == abi::NVML_SUCCESS ? session().free_set(set) : status;
}

}  // extern "C"

}  // namespace firebreak::softgpu
