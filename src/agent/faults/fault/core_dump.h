// SPDX-License-Identifier: Apache-2.0
/// The lines that CUDA prints in its core dump mode (CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1) with
/// CUDA_COREDUMP_SHOW_PROGRESS=1, to the standard error of the process whose kernel raised the exception.
/// They come about 3 ms after the dump has begun. A process whose blocks share the SM prints the same
/// exception of that SM, without a warp (H100 under MPS, driver 580: docs/how/parking.md); so does the
/// faulter itself where its warp has left.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "agent/faults/fault/fault.h"

namespace firebreak::fault {

/// CUDA prints them in a process that has this variable with the value 1.
inline constexpr const char* core_dump_progress_variable = "CUDA_COREDUMP_SHOW_PROGRESS";

/// True when CoreDumpReader makes something of the line; most of a core dump's are only about its progress.
bool is_about_exception(std::string_view line);

/// The words of the lines about one exception.
struct CoreDumpException {
  std::string type;  ///< as NVIDIA names it: "CUDBG_EXCEPTION_WARP_MISALIGNED_ADDRESS"
  std::optional<std::uint32_t> device;
  std::optional<std::uint32_t> sm;
  std::optional<std::uint32_t> warp;
  std::optional<std::uint64_t> program_counter;
  std::string kernel;  ///< mangled, as it is printed; empty: not told (yet)
};

/// Reads the lines of one process, one at a time.
class CoreDumpReader {
 public:
  /// The exception of a warp, once its program counter is told and again once its kernel is; the lines
  /// between them are a fraction of a millisecond apart, but the second does not always come. One without a
  /// warp may be a neighbour's, and is none.
  std::optional<CoreDumpException> read(std::string_view line);

 private:
  CoreDumpException exception_;
  bool in_exception_ = false;
};

/// The fault that an exception of `pid` is.
Fault from_core_dump(const CoreDumpException& exception, pid_t pid, Monotonic when);

}  // namespace firebreak::fault
