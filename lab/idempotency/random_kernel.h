// SPDX-License-Identifier: Apache-2.0
/// Kernels and launches from a seed: affine, strided, guarded, in place, aliased, in loops, with atomics.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "idempotency/traced_gpu.h"

namespace firebreak::idempotency {

/// PTX text of one kernel `k` (.u64 a, .u64 b, .u64 c, .u32 n, .u32 s, .u32 m).
std::string make_random_kernel(std::mt19937_64& random);

/// Buffers for such kernels: three, with room on both sides of where their pointers start.
struct RandomBuffers {
  std::uint64_t address[3] = {};
};
RandomBuffers allocate_buffers(TracedGpu& gpu);

/// A launch of such a kernel; pointers may be of one buffer, apart by little or nothing.
LaunchCase make_random_launch(const RandomBuffers& buffers, std::mt19937_64& random);

}  // namespace firebreak::idempotency
