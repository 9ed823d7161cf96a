// SPDX-License-Identifier: Apache-2.0
/// The software GPU's execution units raise these, in the hardware's terms. The driver in softgpu/driver
/// decides what becomes of them (CUDA error, Xid, UVM event, delays).
#pragma once

#include <cstdint>
#include <string>

namespace firebreak::softgpu {

enum class GpuFaultKind {
  UnmappedAccess,      ///< MMU: no valid PTE
  ReadOnlyViolation,   ///< MMU: store or atomic to a read-only PTE
  InstructionFetch,    ///< MMU: jump to an address that holds no code
  MisalignedAddress,   ///< SM
  OutOfRangeAddress,   ///< SM: not a canonical address
  SharedOutOfBounds,   ///< SM ("Illegal Instruction Parameter" on an H100)
  LocalOutOfBounds,    ///< SM
  StackOverflow,       ///< SM: call depth beyond the local memory reserve
  IllegalInstruction,  ///< SM
  Trap,                ///< SM: trap instruction
  Breakpoint,          ///< SM: brkpt instruction
  Assertion,           ///< SM: a failed assertion of the program's
};

enum class GpuAccess { None, Load, Store, Atomic, Prefetch, Fetch };

struct GpuFault {
  GpuFaultKind kind = GpuFaultKind::UnmappedAccess;
  GpuAccess access = GpuAccess::None;
  std::uint64_t address = 0;   ///< GPU virtual address, or offset in its window for shared and local
  std::string kernel;          ///< name of the entry function
  std::uint32_t ptx_line = 0;  ///< This is the line in the PTX source, 1-based; 0 means that it is not known.
  std::uint64_t block = 0;     ///< The thread that raised it has this place in the grid.
};

const char* to_string(GpuFaultKind kind);

}  // namespace firebreak::softgpu
