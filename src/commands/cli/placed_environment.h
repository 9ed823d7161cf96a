// SPDX-License-Identifier: Apache-2.0
/// What an agent may put into the environment of a tenant's program. An agent of its own user (firebreakd
/// --user) may have been taken over, and `firebreak run` may be root's: so the agent says to which domain the
/// program belongs, and nothing that has a library loaded or a file written.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ground/base/result.h"

namespace firebreak::cli {

using Environment = std::vector<std::pair<std::string, std::string>>;

/// `own`: what the GPU of this process needs, which the agent may say as well; `state_variable`: that which
/// tells several software GPUs apart. PermissionDenied: something else is there, and what. Any thread.
Status check_placed_environment(const Environment& placed, const Environment& own,
                                const std::string& state_variable = {});

/// The software GPU's driver is where it is installed here, and not where the agent has it.
void prefer_own_driver(Environment& placed, const Environment& own);

/// A line for each variable of CUDA's that `own` has another value for, which goes. `heeded`: names of those
/// that were taken as wishes before.
std::vector<std::string> notes_of_replaced(const Environment& placed, const Environment& own,
                                           const std::vector<std::string>& heeded);

/// Whether a variable of that name sets something of the core dump mode.
bool is_of_dumps(const std::string& name);

/// The same without the core dump mode, where dumps would go to something else than a pipe.
Environment without_dumps_to_files(Environment placed);

}  // namespace firebreak::cli
