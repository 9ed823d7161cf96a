// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "ground/base/result.h"
#include "ground/os/kernel.h"

namespace firebreak::os {

/// Writes a command to a file that takes commands (procfs, sysfs), in one write. Errors as those of Kernel,
/// and what the file says of the command.
Status write_command(Kernel& kernel, const std::string& path, std::string_view text);

}  // namespace firebreak::os
