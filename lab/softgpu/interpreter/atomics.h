// SPDX-License-Identifier: Apache-2.0
/// atom and red.
#pragma once

#include "kernels/ptx/ir.h"
#include "softgpu/interpreter/memory_access.h"

namespace firebreak::softgpu {

/// Operand 0 takes the old value (red: a scratch register), 1 is the operand, 2 the second one of cas. Null:
/// there is no such atomic.
Transfer select_atomic(ptx::AtomicOp operation, ptx::Type type);

}  // namespace firebreak::softgpu
