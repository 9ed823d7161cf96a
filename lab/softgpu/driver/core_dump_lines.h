// SPDX-License-Identifier: Apache-2.0
/// CUDA's core dump mode, as far as others see it: the lines on standard error that name a kernel's
/// exception. Nothing is dumped, and the process is not aborted.
#pragma once

#include <string>

#include "softgpu/interpreter/gpu_fault.h"

namespace firebreak::softgpu::driver {

/// Whether the environment asks for the mode and for its lines.
bool core_dump_lines_wanted();

/// The lines of one exception, in the form that an H100 printed. Misaligned and illegal addresses were seen
/// there; which name NVIDIA gives the other kinds is assumed. The SM is always 0, the program counter stands
/// for the line of PTX.
std::string core_dump_lines(const GpuFault& fault);

}  // namespace firebreak::softgpu::driver
