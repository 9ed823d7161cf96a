// SPDX-License-Identifier: Apache-2.0
/// The words of CUDA's core dump mode on standard error, and the numbers of exceptions: as an H100 printed
/// them (driver 580.159.04).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "softgpu/interpreter/gpu_fault.h"

namespace firebreak::softgpu::driver {

/// The warp of a store has gone on, and out, when the memory answers: nothing is halted.
bool warp_has_left(const GpuFault& fault);

/// One of CUDBG_EXCEPTION_*; 0: a trap or a breakpoint, which is none.
std::uint32_t exception_number(GpuFaultKind kind);

/// Stands for the line of PTX.
std::uint64_t program_counter(const GpuFault& fault);

/// The lines of one exception; none of a trap or a breakpoint. The SM is always 0.
std::string core_dump_lines(const GpuFault& fault);

/// The lines before it, of any client of the domain.
std::string core_dump_begin_lines();
/// What an H200's driver 580.159.04 says at that moment where nobody has asked for those lines.
inline constexpr std::string_view core_dump_hint =
    "Starting GPU coredump generation, set the CUDA_COREDUMP_SHOW_PROGRESS environment variable to 1 to "
    "enable more "
    "detailed output\n";
/// Returns the lines after it.
std::string core_dump_end_lines();

}  // namespace firebreak::softgpu::driver
