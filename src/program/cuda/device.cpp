// SPDX-License-Identifier: Apache-2.0
#include "program/cuda/device.h"

#include <array>
#include <cstddef>

namespace firebreak::cuda {

Result<int> Device::count(const Driver& driver) {
  int count = 0;
  const auto status = driver.check(driver->cuDeviceGetCount(&count), "cuDeviceGetCount");
  if (!status) return propagate(status);
  return count;
}

Result<Device> Device::get(const Driver& driver, int ordinal) {
  CUdevice device = CU_DEVICE_INVALID;
  const auto status = driver.check(driver->cuDeviceGet(&device, ordinal), "cuDeviceGet");
  if (!status) return propagate(status, "GPU " + std::to_string(ordinal));
  return Device(driver, device);
}

Result<int> Device::attribute(CUdevice_attribute attribute) const {
  int value = 0;
  const auto status =
      driver_->check((*driver_)->cuDeviceGetAttribute(&value, attribute, device_), "cuDeviceGetAttribute");
  if (!status) return propagate(status);
  return value;
}

Result<DeviceInfo> Device::info() const {
  const Driver& driver = *driver_;
  std::array<char, 256> name{};
  std::array<char, 32> bus{};
  CUuuid uuid{};
  std::size_t memory_bytes = 0;
  auto status =
      driver.check(driver->cuDeviceGetName(name.data(), name.size() - 1, device_), "cuDeviceGetName");
  if (status) status = driver.check(driver->cuDeviceGetUuid(&uuid, device_), "cuDeviceGetUuid");
  if (status) {
    status =
        driver.check(driver->cuDeviceGetPCIBusId(bus.data(), bus.size() - 1, device_), "cuDeviceGetPCIBusId");
  }
  if (status) status = driver.check(driver->cuDeviceTotalMem(&memory_bytes, device_), "cuDeviceTotalMem");
  if (!status) return propagate(status);

  const auto version = driver.version();
  const auto major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  const auto minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  const auto multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  for (const auto* number : {&version, &major, &minor, &multiprocessors}) {
    if (!*number) return propagate(*number);
  }
  DeviceInfo info;
  info.name = name.data();
  info.uuid = format_uuid(uuid);
  info.pci_bus_id = bus.data();
  info.driver_version = *version;
  info.compute_capability_major = *major;
  info.compute_capability_minor = *minor;
  info.multiprocessors = *multiprocessors;
  info.total_memory_bytes = memory_bytes;
  return info;
}

std::string format_uuid(const CUuuid& uuid) {
  constexpr const char* digits = "0123456789abcdef";
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const auto byte = static_cast<unsigned char>(uuid.bytes[i]);
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

}  // namespace firebreak::cuda
