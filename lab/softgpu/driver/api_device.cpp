// SPDX-License-Identifier: Apache-2.0
/// Entry points: initialisation and the one device.
#include <fmt/core.h>

#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "softgpu/driver/device_attributes.h"
#include "softgpu/driver/entry.h"
#include "softgpu/machine/device_uuid.h"

using namespace firebreak::softgpu::driver;

namespace {

constexpr std::string_view device_name = "Firebreak Software GPU";

std::string pci_bus_id(Process& process) {
  return fmt::format("0000:00:{:02x}.0", 5 + process.gpu().number());
}

/// Checks what every device call checks.
template <class Action>
CUresult with_device(CUdevice device, const void* answer, Action&& action) {
  return with_process([&](Process& process) {
    if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
    if (answer == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return std::forward<Action>(action)(process);
  });
}

CUresult copy_text(char* into, int length_bytes, std::string_view text) {
  if (length_bytes <= 0) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t count = std::min(text.size(), static_cast<std::size_t>(length_bytes) - 1);
  std::memcpy(into, text.data(), count);
  into[count] = '\0';
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned int flags) { return flags != 0 ? CUDA_ERROR_INVALID_VALUE : Process::initialise(); }

CUresult cuDriverGetVersion(int* driver_version) {
  if (driver_version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *driver_version = 13000;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  return with_device(0, count, [&](Process&) {
    *count = 1;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return with_device(ordinal, device, [&](Process&) {
    *device = 0;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetName(char* name, int length_bytes, CUdevice device) {
  return with_device(device, name, [&](Process&) { return copy_text(name, length_bytes, device_name); });
}

CUresult cuDeviceGetUuid_v2(CUuuid* answer, CUdevice device) {
  return with_device(device, answer, [&](Process& process) {
    const auto uuid = firebreak::softgpu::device_uuid_of(process.gpu().number());
    std::memcpy(answer->bytes, uuid.data(), sizeof(answer->bytes));
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetUuid(CUuuid* answer, CUdevice device) { return cuDeviceGetUuid_v2(answer, device); }

CUresult cuDeviceTotalMem_v2(std::size_t* size_bytes, CUdevice device) {
  return with_device(device, size_bytes, [&](Process& process) {
    *size_bytes = process.gpu().total_bytes();
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return with_device(device, value, [&](Process& process) {
    return store(value, device_attribute(attribute, process.is_mps_client(), process.sm_count()));
  });
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  return with_device(device, major, [&](Process&) {
    if (minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *major = compute_capability_major;
    *minor = compute_capability_minor;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetPCIBusId(char* text, int length_bytes, CUdevice device) {
  return with_device(device, text,
                     [&](Process& process) { return copy_text(text, length_bytes, pci_bus_id(process)); });
}

CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* text) {
  return with_device(0, device, [&](Process& process) {
    if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (std::string_view(text) != pci_bus_id(process)) return CUDA_ERROR_INVALID_DEVICE;
    *device = 0;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceCanAccessPeer(int* can_access_peer, CUdevice device, CUdevice peer) {
  return with_device(device, can_access_peer, [&](Process&) {
    if (peer != 0) return CUDA_ERROR_INVALID_DEVICE;
    *can_access_peer = 0;
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
