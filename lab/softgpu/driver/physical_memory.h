// SPDX-License-Identifier: Apache-2.0
/// Device memory: a memfd, so that it lives as long as anybody holds a descriptor of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "ground/os/fd.h"
#include "ground/os/memory.h"
#include "softgpu/driver/answer.h"
#include "softgpu/machine/shared_gpu.h"

namespace firebreak::softgpu::driver {

/// The granularity that the hardware's large pages give every allocation.
inline constexpr std::uint64_t granularity_bytes = std::uint64_t{2} << 20;

/// Immutable; shared by threads. Device memory is given back to the GPU's account with the last owner in the
/// process that made it.
class PhysicalMemory {
 public:
  /// Returns OUT_OF_MEMORY when the GPU, or the machine, has no more. `size_bytes` is a multiple of the
  /// granularity.
  static Answer<std::shared_ptr<PhysicalMemory>> create(std::shared_ptr<SharedGpu> gpu,
                                                        std::uint64_t size_bytes);
  /// Memory that another process exported; INVALID_VALUE for any other descriptor. The caller keeps `fd`.
  static Answer<std::shared_ptr<PhysicalMemory>> import(int fd);
  PhysicalMemory(const PhysicalMemory&) = delete;
  PhysicalMemory& operator=(const PhysicalMemory&) = delete;
  ~PhysicalMemory();

  std::byte* host() const { return mapping_.bytes().data(); }
  std::uint64_t size_bytes() const { return mapping_.size_bytes(); }
  bool is_imported() const { return account_ == nullptr; }
  /// A descriptor for another process; owned by the caller.
  Answer<os::Fd> export_descriptor() const;

 private:
  PhysicalMemory(os::Fd fd, os::Mapping mapping, std::shared_ptr<SharedGpu> account);

  os::Fd fd_;
  os::Mapping mapping_;
  std::shared_ptr<SharedGpu> account_;  ///< null: accounted elsewhere
};

}  // namespace firebreak::softgpu::driver
