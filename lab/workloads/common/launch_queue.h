// SPDX-License-Identifier: Apache-2.0
/// Kernels by number, and a run of launches whose first error is asked for once, at its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "program/cuda/module.h"

namespace firebreak::workloads {

/// Kernels of a module that a workload launches. Copyable; valid as long as the module lives.
class Kernels {
 public:
  /// Kernel i is the one called names[i].
  static Result<Kernels> find(const cuda::Module& module, std::span<const char* const> names);
  /// Puts `found` in their place from now on; where they were not found, nothing changes.
  Status replace_by(Result<Kernels> found);
  const cuda::Function& operator[](std::size_t index) const { return functions_[index]; }

 private:
  std::vector<cuda::Function> functions_;
};

/// Queues launches in one stream. After an error it queues nothing more.
class LaunchQueue {
 public:
  LaunchQueue(const Kernels& kernels, CUstream stream) : kernels_(kernels), stream_(stream) {}

  /// Launches a kernel; each of ours has one parameter, a struct.
  template <class Index, class Arguments>
  void launch(Index kernel, const cuda::LaunchShape& shape, const Arguments& arguments) {
    if (status_) status_ = kernels_[static_cast<std::size_t>(kernel)].launch(stream_, shape, arguments);
  }

  /// One thread for each of `count` elements, with rows of blocks one above the other.
  template <class Index, class Arguments>
  void launch_each(Index kernel, std::uint64_t count, const Arguments& arguments,
                   std::uint32_t block_rows = 1) {
    constexpr std::uint32_t threads = 128;
    const auto blocks = static_cast<unsigned int>((count + threads - 1) / threads);
    launch(kernel, {.grid = {.x = blocks, .y = block_rows}, .block = {.x = threads}}, arguments);
  }

  /// The first error so far.
  const Status& status() const { return status_; }

 private:
  const Kernels& kernels_;
  CUstream stream_;
  Status status_;
};

/// The largest power of two that is not above `value`; `value` is at least 1.
constexpr std::uint32_t power_of_two_up_to(std::uint32_t value) {
  std::uint32_t power = 1;
  while (power <= value / 2) power *= 2;
  return power;
}

/// Device addresses as the typed pointers of kernel parameters.
template <class T>
T* device_pointer(CUdeviceptr address, std::uint64_t element = 0) {
  return reinterpret_cast<T*>(address + element * sizeof(T));
}

}  // namespace firebreak::workloads
