// SPDX-License-Identifier: Apache-2.0
/// What a test sees of a client's page faults from outside, through the client's duplicated UVM descriptor.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "shared/abi/uvm_tools.h"
#include "softgpu/devices/device_kernel.h"
#include "tests/softgpu_driver/machine_test.h"

namespace firebreak::test {

/// The process's descriptors that are UVM's, as duplicates.
std::vector<os::Fd> uvm_descriptors(softgpu::DeviceKernel& devices, const Client& client);

/// A queue of one process's events.
struct Tracker {
  static constexpr std::uint32_t entries = 64;
  os::Mapping queue = os::Mapping::anonymous(entries * sizeof(abi::UvmEvent)).value();
  os::Mapping control = os::Mapping::anonymous(4096).value();
  os::Fd tools;

  /// The status that the driver answers.
  std::uint32_t init(softgpu::DeviceKernel& devices, const os::Fd& uvm);
  void enable(softgpu::DeviceKernel& devices, std::uint64_t event_types);
  /// Waits for the next event and takes it; empty when none came.
  std::optional<abi::UvmEvent> next(softgpu::DeviceKernel& devices);
  /// How many events there were.
  std::uint32_t written() const { return control.as<abi::UvmToolsControl>()->put_behind; }
};

/// Of the one descriptor that is a VA space.
Tracker track(softgpu::DeviceKernel& devices, const Client& client, std::uint64_t event_types);

}  // namespace firebreak::test
