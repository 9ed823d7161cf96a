// SPDX-License-Identifier: Apache-2.0
/// A fault that one kernel launch raises; most kinds are this.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "inject/kind.h"

namespace firebreak::inject {

/// The kernel takes two .u64 parameters: `target` and `sink`, the address of 4096 writable bytes.
struct KernelFault {
  std::string_view ptx;
  std::string kernel;
  CUdeviceptr target = 0;
  unsigned int threads = 1;
  unsigned int shared_bytes = 0;
  std::shared_ptr<const void> keep_alive;  ///< what `target` needs until the fault
};

/// Loads the module and allocates the rest, in the current context.
Result<std::unique_ptr<Injection>> prepare_kernel(const cuda::Driver& driver, KernelFault fault);

}  // namespace firebreak::inject
