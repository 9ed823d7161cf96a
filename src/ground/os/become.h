// SPDX-License-Identifier: Apache-2.0
/// This process becomes another program.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ground/base/result.h"

namespace firebreak::os {

/// The file that a program's name means, looked up in PATH where it has no slash. NotFound: there is none;
/// PermissionDenied: there is one that cannot be executed, or a folder.
Result<std::string> program_file(const std::string& program);

/// Becomes that file, with these variables besides our own, or in their place. Its first argument is what it
/// takes for its name. What is no program for Linux is one for sh. Returns only where that failed.
Status become_program(const std::string& file, const std::vector<std::string>& arguments,
                      const std::vector<std::pair<std::string, std::string>>& environment);

}  // namespace firebreak::os
