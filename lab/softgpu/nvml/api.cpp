// SPDX-License-Identifier: Apache-2.0
/// NVML's functions as programs call them; their names, arguments and answers are NVIDIA's.
#include <algorithm>
#include <array>
#include <optional>
#include "ground/os/self.h"
#include "ground/platform/nvml.h"

#include "softgpu/environment.h"
#include "softgpu/machine/device_uuid.h"
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

/// The first of these is the first GPU's handle.
std::array<char, 8> handles;

nvmlDevice_t handle_of(std::size_t gpu) { return reinterpret_cast<nvmlDevice_t>(&handles.at(gpu)); }

/// The number of the GPU that has that handle; none: it is none.
std::optional<std::size_t> number_of(nvmlDevice_t device) {
  for (std::size_t gpu = 0; gpu < session().gpus().size(); ++gpu) {
    if (device == handle_of(gpu)) return gpu;
  }
  return std::nullopt;
}

/// SUCCESS where NVML runs, and there is room for the answer.
nvmlReturn_t check(const void* into) {
  if (session().gpus().empty()) return abi::NVML_ERROR_UNINITIALIZED;
  return into != nullptr ? abi::NVML_SUCCESS : abi::NVML_ERROR_INVALID_ARGUMENT;
}

/// And `device` is a GPU of it.
nvmlReturn_t check(nvmlDevice_t device, const void* into) {
  const nvmlReturn_t status = check(into);
  if (status != abi::NVML_SUCCESS) return status;
  return number_of(device) ? abi::NVML_SUCCESS : abi::NVML_ERROR_INVALID_ARGUMENT;
}

/// Of a device that was checked; null: NVML ended meanwhile.
std::shared_ptr<SharedGpu> gpu_of(nvmlDevice_t device) {
  const auto gpus = session().gpus();
  const auto number = number_of(device);
  return number && *number < gpus.size() ? gpus[*number] : nullptr;
}

}  // namespace

extern "C" {

nvmlReturn_t nvmlInit_v2();
nvmlReturn_t nvmlInit_v2() { return session().init(); }

nvmlReturn_t nvmlShutdown();
nvmlReturn_t nvmlShutdown() { return session().shutdown(); }

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int* count);
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int* count) {
  const nvmlReturn_t status = check(count);
  if (status == abi::NVML_SUCCESS) *count = static_cast<unsigned int>(session().gpus().size());
  return status;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t* device);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t* device) {
  const nvmlReturn_t status = check(device);
  if (status != abi::NVML_SUCCESS) return status;
  if (index >= session().gpus().size()) return abi::NVML_ERROR_INVALID_ARGUMENT;
  *device = handle_of(index);
  return abi::NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int* index);
nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int* index) {
  const nvmlReturn_t status = check(device, index);
  if (status == abi::NVML_SUCCESS) *index = static_cast<unsigned int>(number_of(device).value_or(0));
  return status;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, abi::nvmlPciInfo_t* pci);
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, abi::nvmlPciInfo_t* pci) {
  const nvmlReturn_t status = check(device, pci);
  if (status != abi::NVML_SUCCESS) return status;
  *pci = {};
  pci->device = first_pci_slot + static_cast<unsigned int>(number_of(device).value_or(0));
  return abi::NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* uuid, unsigned int size_bytes);
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* uuid, unsigned int size_bytes) {
  const nvmlReturn_t status = check(device, uuid);
  if (status != abi::NVML_SUCCESS) return status;
  const std::string text = uuid_text(static_cast<std::uint32_t>(number_of(device).value_or(0)));
  if (text.size() >= size_bytes) return abi::NVML_ERROR_INSUFFICIENT_SIZE;
  std::ranges::copy(text, uuid);
  uuid[text.size()] = '\0';
  return abi::NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, unsigned int* mode);
nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, unsigned int* mode) {
  const nvmlReturn_t status = check(device, mode);
  if (status != abi::NVML_SUCCESS) return status;
  const bool is_exclusive = os::environment_variable(environment::is_exclusive) == "1";
  *mode = is_exclusive ? abi::NVML_COMPUTEMODE_EXCLUSIVE_PROCESS : abi::NVML_COMPUTEMODE_DEFAULT;
  return abi::NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, abi::nvmlMemory_t* memory);
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, abi::nvmlMemory_t* memory) {
  const nvmlReturn_t status = check(device, memory);
  const auto gpu = gpu_of(device);
  if (status != abi::NVML_SUCCESS || !gpu) return status;
  *memory = {gpu->total_bytes(), gpu->total_bytes() - gpu->used_bytes(), gpu->used_bytes()};
  return abi::NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int* count,
                                                     abi::nvmlProcessInfo_t* processes);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int* count,
                                                     abi::nvmlProcessInfo_t* processes) {
  const nvmlReturn_t status = check(device, count);
  const auto gpu = gpu_of(device);
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
  const nvmlReturn_t status = check(set);
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
  found->listen(number_of(device).value_or(0), event_types);
  return abi::NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, abi::nvmlEventData_t* data, unsigned int timeout_ms);
nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, abi::nvmlEventData_t* data, unsigned int timeout_ms) {
  const nvmlReturn_t status = check(data);
  if (status != abi::NVML_SUCCESS) return status;
  const auto found = session().set(set);
  if (!found) return abi::NVML_ERROR_INVALID_ARGUMENT;
  const auto event = found->wait(Milliseconds(timeout_ms));
  if (!event) return abi::NVML_ERROR_TIMEOUT;
  *data = {handle_of(event->gpu), event->of_gpu.type, event->of_gpu.data, no_instance, no_instance};
  return abi::NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set);
nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
  const nvmlReturn_t status = check(set);
  return status == abi::NVML_SUCCESS ? session().free_set(set) : status;
}

}  // extern "C"

}  // namespace firebreak::softgpu
