// SPDX-License-Identifier: Apache-2.0
/// A kernel while it is on the GPU: where its blocks lie, which of them an exception of somebody else's has
/// halted with their multiprocessor, and that it takes turns from other domains.
#pragma once

#include <cstdint>

#include "softgpu/driver/gpu_control.h"
#include "softgpu/interpreter/interpreter.h"

namespace firebreak::softgpu::driver {

/// A kernel of one launch; for the thread that runs it.
class KernelOnGpu final : public BlockGate {
 public:
  explicit KernelOnGpu(GpuControl& control);

  std::uint32_t multiprocessor(std::uint64_t block) const {
    return multiprocessor_of(control_.slot(), block);
  }

  bool is_halted(std::uint64_t block) override;
  bool wait(std::uint64_t block) override;

 private:
  void take_turns();
  bool stands_still(std::uint64_t block) const;

  GpuControl& control_;
  const bool came_later_;  ///< true: it came later than the exception, and a halted multiprocessor gets no
                           ///< new blocks
  bool stood_still_ = false;
  std::int64_t turn_began_ns_;
};

}  // namespace firebreak::softgpu::driver
