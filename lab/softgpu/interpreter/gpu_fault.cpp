// SPDX-License-Identifier: Apache-2.0
#include "softgpu/interpreter/gpu_fault.h"

namespace firebreak::softgpu {

const char* to_string(GpuFaultKind kind) {
  switch (kind) {
    case GpuFaultKind::UnmappedAccess:
      return "unmapped access";
    case GpuFaultKind::ReadOnlyViolation:
      return "read-only violation";
    case GpuFaultKind::InstructionFetch:
      return "instruction fetch";
    case GpuFaultKind::MisalignedAddress:
      return "misaligned address";
    case GpuFaultKind::OutOfRangeAddress:
      return "out of range address";
    case GpuFaultKind::SharedOutOfBounds:
      return "shared memory out of bounds";
    case GpuFaultKind::LocalOutOfBounds:
      return "local memory out of bounds";
    case GpuFaultKind::StackOverflow:
      return "stack overflow";
    case GpuFaultKind::IllegalInstruction:
      return "illegal instruction";
    case GpuFaultKind::Trap:
      return "trap";
    case GpuFaultKind::Breakpoint:
      return "breakpoint";
    case GpuFaultKind::Assertion:
      return "failed assertion";
  }
  return "unknown";
}

}  // namespace firebreak::softgpu
