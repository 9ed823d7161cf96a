// SPDX-License-Identifier: Apache-2.0
/// Gives every number the bit pattern of the type that the instruction reads at its place. Internal to
/// src/kernels/ptx.
#pragma once

#include "kernels/ptx/diagnostic.h"
#include "kernels/ptx/ir.h"

namespace firebreak::ptx {

/// Encodes immediates, once for each freshly parsed module. Complains about operands that do not fit their
/// instruction.
Finding encode_immediates(const Module& module, Function& function);

}  // namespace firebreak::ptx
