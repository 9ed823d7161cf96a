// SPDX-License-Identifier: Apache-2.0
/// The multiprocessor that an exception halts, where core dumps hold the domain. Other clients' kernels that
/// have a block there do not end. As on an H100 that is over once the GPU switches contexts, which it does
/// where another domain has a kernel for as long as a turn; otherwise after some 4 s, or with the domain.
/// Blocks elsewhere go on, and so do kernels that were launched since (docs/how/parking.md). Whether a switch
/// counts that comes while dumps are still written was not measured; here it does.
#pragma once

#include <cstdint>
#include <optional>

#include "softgpu/machine/domain.h"
#include "softgpu/machine/shared_gpu.h"

namespace firebreak::softgpu {

struct HaltRules {
  std::optional<std::int64_t> limit_ns;  ///< time since the dumps are due; empty: there is none
  std::int64_t turn_ns = 0;

  /// FIREBREAK_SOFTGPU_HALT_MS and the speed.
  static HaltRules from_environment();
};

/// Returns where a block of that client lies. The small kernels of a few clients share none, and a kernel of
/// as many blocks as there are multiprocessors has one on each. A share of the GPU changes nothing: on an
/// H100 shares of 45, 45 and 10 % did not keep kernels from standing still.
std::uint32_t multiprocessor_of(std::uint32_t slot, std::uint64_t block);

/// Kernels that were there before the exception stand still there.
bool is_halted(const SharedGpu& gpu, const Domain& domain, const HaltRules& rules,
               std::uint32_t multiprocessor);

}  // namespace firebreak::softgpu
