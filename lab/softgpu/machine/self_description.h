// SPDX-License-Identifier: Apache-2.0
/// The name of the software GPU, and where its descriptors are found.
#pragma once

namespace firebreak::softgpu {

/// The path that /proc/PID/fd shows for a process's UVM descriptor.
inline constexpr const char* uvm_link_target = "/memfd:nvidia-uvm (deleted)";

/// The driver in one line, by the environment that this process has: with environment::uvm_asks_cpu it is
/// another one.
const char* driver_name();

}  // namespace firebreak::softgpu
