// SPDX-License-Identifier: Apache-2.0
/// A fault that one kernel launch raises; most kinds are this: a kernel, and what it is told to touch.
#pragma once

#include <memory>
#include <string_view>

#include "inject/kind.h"
#include "program/cuda/module.h"

namespace firebreak::inject {

/// The kernel takes two .u64 parameters: `target` and `sink`, the address of 4096 writable bytes.
struct Kernel {
  std::string_view ptx;
  const char* name = nullptr;
  unsigned int threads = 1;
  unsigned int shared_bytes = 0;
};

/// The first parameter of a kernel.
struct Target {
  CUdeviceptr address = 0;
  std::shared_ptr<const void> keep_alive;  ///< keeps what `address` needs until the fault
};

/// Finds or makes the target in the current context, which `context` is.
using FindTarget = Result<Target> (*)(const cuda::ContextView& context, const Options& options);

/// Makes `context` current, finds the target, loads the kernel and allocates the rest.
Prepared prepare_kernel(const cuda::ContextView& context, const Options& options, const Kernel& kernel,
                        FindTarget find_target);

/// The same for a kernel that is loaded already, into the current context.
Prepared prepare_loaded(const cuda::ContextView& context, const Options& options, const Kernel& kernel,
                        cuda::Module module, FindTarget find_target);

/// The same as a Kind's `prepare`.
template <const Kernel& kernel, FindTarget find_target>
Prepared prepare_kernel(const cuda::Driver&, const cuda::ContextView& context, const Options& options) {
  return prepare_kernel(context, options, kernel, find_target);
}

}  // namespace firebreak::inject
