// SPDX-License-Identifier: Apache-2.0
/// fma.rn.f32 with the host's own instruction, where it has one: the hottest operation of most kernels.
#pragma once

#include "softgpu/interpreter/lane_operation.h"

namespace firebreak::softgpu {

/// This tells whether fused_f32() may be used on this machine.
bool host_has_fma();
/// d = a * b + c, rounded once; NaNs canonical. The bits are those of std::fma.
Selected fused_f32();

}  // namespace firebreak::softgpu
