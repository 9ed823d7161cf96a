// SPDX-License-Identifier: Apache-2.0
#include "softgpu/interpreter/fused.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "softgpu/interpreter/float_rules.h"

namespace firebreak::softgpu {

#if defined(__x86_64__)

namespace {

[[gnu::target("avx,fma")]] void fuse_all(float* d, const float* a, const float* b, const float* c) {
  const __m256 nan = _mm256_set1_ps(canonical_nan);
  for (int lane = 0; lane < warp_lanes; lane += 8) {
    const __m256 result =
        _mm256_fmadd_ps(_mm256_loadu_ps(a + lane), _mm256_loadu_ps(b + lane), _mm256_loadu_ps(c + lane));
    const __m256 unordered = _mm256_cmp_ps(result, result, _CMP_UNORD_Q);
    _mm256_storeu_ps(d + lane, _mm256_blendv_ps(result, nan, unordered));
  }
}

float fuse_one(float a, float b, float c) { return canonical(std::fma(a, b, c)); }

const MicroOp* execute_fused(Warp& warp, const MicroOp* op) {
  const LaneMask mask = warp.lanes(*op);
  if (mask == all_lanes) {
    fuse_all(warp.pointer<float>(op->operands[0]), warp.pointer<float>(op->operands[1]),
             warp.pointer<float>(op->operands[2]), warp.pointer<float>(op->operands[3]));
    return op + 1;
  }
  return lane_operation<&fuse_one>().execute(warp, op);
}

}  // namespace

bool host_has_fma() { return __builtin_cpu_supports("avx") && __builtin_cpu_supports("fma"); }
Selected fused_f32() {
  Selected selected = lane_operation<&fuse_one>();
  selected.execute = &execute_fused;
  return selected;
}

#else

bool host_has_fma() { return false; }
Selected fused_f32() { return {}; }

#endif

}  // namespace firebreak::softgpu
