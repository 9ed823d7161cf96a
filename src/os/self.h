// SPDX-License-Identifier: Apache-2.0
/// What a process may ask about itself.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/result.h"

namespace firebreak::os {

pid_t own_pid();

/// The absolute path of the running program.
Result<std::string> executable_path();

/// The value of an environment variable, or empty. Not safe beside setenv() in another thread.
std::optional<std::string> environment_variable(const std::string& name);

/// Where PATH finds an executable `program`; a name with a slash is only checked. Empty when there is none.
std::optional<std::string> find_program(const std::string& program);

}  // namespace firebreak::os
