// SPDX-License-Identifier: Apache-2.0
/// Who did it, from a GPU core dump: an ELF file whose sections are tables (cudacoredump.h of CUDA 13.0).
/// What stands in the table of SMs stands in the dumps of all clients of a domain. The faulter's alone has a
/// lane with an exception, or, after a trap, a warp that is broken (24 dumps of an H100, driver 580:
/// docs/how/parking.md).
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "agent/faults/fault/core_dump.h"
#include "ground/base/result.h"

namespace firebreak::park {

/// Words of own_exception_in() for a trap, and for an assertion that has failed.
inline constexpr const char* trap_type = "TRAP";
inline constexpr const char* assertion_type = "CUDBG_EXCEPTION_WARP_ASSERT";

/// The first exception in the dump that is its process's own; empty: its kernels did nothing wrong. `type` is
/// NVIDIA's name, or "CUDBG_EXCEPTION_UNKNOWN" of a number that this program does not know; of a trap, which
/// has no number, "TRAP". `kernel` is whose code stands where the program counter is. Protocol: it is no
/// complete dump, or has not even what stands in everybody's. Reads nothing outside of `dump`, whatever that
/// holds.
Result<std::optional<fault::CoreDumpException>> own_exception_in(std::span<const std::byte> dump);

/// The same of what has come of a dump so far: its section headers are its end, and what is told by those
/// that are there counts. Empty: nothing is told yet. The name of the section may not be there, and the SM
/// and the warp with it.
std::optional<fault::CoreDumpException> own_exception_in_beginning(std::span<const std::byte> dump);

struct DumpLength {
  bool is_known = false;
  std::size_t bytes = 0;  ///< length of the whole; not known: so many of its first are needed to know; 0: it
                          ///< is none
};
DumpLength length_of_dump(std::span<const std::byte> beginning);

}  // namespace firebreak::park
