// SPDX-License-Identifier: Apache-2.0
/// Describes in words what is in a file with code for GPUs.
#pragma once

#include <string>
#include <string_view>

#include "ground/base/result.h"

namespace firebreak::fatbin {

/// One line for each image, entry and variable, and for what is not certain of an entry:
///
///     image 1, fat binary, 13672 bytes
///       elf 90a zstd 1120 4528
///         variable counter global 4 local reached
///         obstacle: it loads code that allocates memory in its kernels
///       ptx 90 none 680 680
///
/// The two numbers are bytes as stored and unpacked.
Result<std::string> describe(std::string_view file);

}  // namespace firebreak::fatbin
