// SPDX-License-Identifier: Apache-2.0
/// Machine code for one GPU architecture: an ELF file with sections and symbols of NVIDIA's.
#pragma once

#include <string_view>

#include "kernels/fatbin/code.h"

namespace firebreak::fatbin {

/// Returns the variables of a cubin. Uncertainty is an obstacle: no answer is a guess. A variable is reached
/// where a relocation names it, or stands against its section: code has no other way to its address before it
/// is loaded. Constant memory is written by the host alone.
Code code_of_cubin(std::string_view cubin);

}  // namespace firebreak::fatbin
