// SPDX-License-Identifier: Apache-2.0
/// A kernel and how to launch it with typed arguments.
#pragma once

#include <array>
#include <span>
#include <type_traits>

#include "program/cuda/driver.h"

namespace firebreak::cuda {

struct Extent {
  unsigned int x = 1;
  unsigned int y = 1;
  unsigned int z = 1;
};

struct LaunchShape {
  Extent grid;                    ///< blocks
  Extent block;                   ///< threads a block
  unsigned int shared_bytes = 0;  ///< dynamic shared memory a block
};

/// A kernel of a loaded module. Copyable; valid as long as its Module lives.
class Function {
 public:
  CUfunction handle() const { return function_; }

  Result<int> attribute(CUfunction_attribute attribute) const;
  Status set_attribute(CUfunction_attribute attribute, int value) const;

  /// Queues the kernel in `stream` (null: the legacy default stream). The argument types have to be the
  /// kernel's parameter types, in order; the driver copies them before this returns.
  template <class... Arguments>
  Status launch(CUstream stream, const LaunchShape& shape, const Arguments&... arguments) const {
    static_assert((std::is_trivially_copyable_v<Arguments> && ...), "the driver copies arguments as bytes");
    std::array<void*, sizeof...(Arguments) + 1> addresses{
        const_cast<void*>(static_cast<const void*>(&arguments))..., nullptr};
    return driver_->check(launch_packed(stream, shape, addresses), "cuLaunchKernel");
  }

  /// The same with one pointer a parameter, and with the driver's own answer.
  CUresult launch_packed(CUstream stream, const LaunchShape& shape, std::span<void*> arguments) const;

 private:
  friend class Module;
  Function(const Driver& driver, CUfunction function) : driver_(&driver), function_(function) {}

  const Driver* driver_;
  CUfunction function_;
};

}  // namespace firebreak::cuda
