// SPDX-License-Identifier: Apache-2.0
/// The subcommands of `firebreak-lab`, one file each: what is asked of the user, and the call that does it.
#pragma once

#include "commands/cli/command.h"

namespace firebreak::commands {

using cli::Action;
using cli::complain;
using cli::program_folder;

// Functions that add their subcommand to `app` and, when the user chose it, put what to do into `action`.
void add_characterize(CLI::App& app, Action& action);
void add_demo(CLI::App& app, Action& action);
void add_inject(CLI::App& app, Action& action);
void add_soak(CLI::App& app, Action& action);
void add_victim(CLI::App& app, Action& action);

}  // namespace firebreak::commands
