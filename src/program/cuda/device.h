// SPDX-License-Identifier: Apache-2.0
/// One GPU as the driver counts them, and what is worth telling about it.
#pragma once

#include <cstdint>
#include <string>

#include "program/cuda/driver.h"

namespace firebreak::cuda {

/// People and results files read this.
struct DeviceInfo {
  std::string name;        ///< "NVIDIA H100 80GB HBM3"
  std::string uuid;        ///< "GPU-01234567-89ab-cdef-0123-456789abcdef", as nvidia-smi shows it
  std::string pci_bus_id;  ///< "0000:01:00.0"
  int driver_version = 0;  ///< newest CUDA version of the driver: 13000 for 13.0
  int compute_capability_major = 0;
  int compute_capability_minor = 0;
  int multiprocessors = 0;
  std::uint64_t total_memory_bytes = 0;
};

/// A number and a driver: copyable, owns nothing, needs no context.
class Device {
 public:
  static Result<int> count(const Driver& driver);
  /// `ordinal` counts from 0 in the order of CUDA_VISIBLE_DEVICES.
  static Result<Device> get(const Driver& driver, int ordinal);

  CUdevice handle() const { return device_; }
  const Driver& driver() const { return *driver_; }

  Result<int> attribute(CUdevice_attribute attribute) const;
  Result<DeviceInfo> info() const;

 private:
  friend class ContextView;
  Device(const Driver& driver, CUdevice device) : driver_(&driver), device_(device) {}

  const Driver* driver_;
  CUdevice device_;
};

/// "GPU-..." of the 16 bytes that the driver answers.
std::string format_uuid(const CUuuid& uuid);

}  // namespace firebreak::cuda
