// SPDX-License-Identifier: Apache-2.0
/// What /proc says of all processes, and of one that is not ours.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "os/kernel.h"

namespace firebreak::os {

/// Of this machine, in no order.
std::vector<pid_t> all_processes(Kernel& kernel);

/// Those whose parent is `pid` now, in no order.
std::vector<pid_t> children_of(Kernel& kernel, pid_t pid);

/// The folder of a process in /proc, without a slash at its end.
std::string proc_folder(pid_t pid);

/// What a process was started with: NAME=VALUE, each with a NUL at its end. Empty also where that is not for
/// us to see.
std::string environment_of(Kernel& kernel, pid_t pid);

/// Calls back with each of the texts that end with a NUL, as in an environment or a command line.
void for_each_text(std::string_view texts, const std::function<void(std::string_view)>& callback);

/// The last value that an environment, as /proc shows it, gives a variable.
std::optional<std::string> variable_in(std::string_view environment, std::string_view name);

}  // namespace firebreak::os
