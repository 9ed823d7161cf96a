// SPDX-License-Identifier: Apache-2.0
/// The subcommands of `firebreak`, one file each: what is asked of the user, and the call that does it.
#pragma once

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace firebreak::cli {

/// What the chosen subcommand does once the command line is parsed; returns the exit status.
using Action = std::function<int()>;

// Each adds its subcommand to `app` and, when the user chose it, puts what to do into `action`.
void add_characterize(CLI::App& app, Action& action);
void add_demo(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);
void add_guard_trial(CLI::App& app, Action& action);
void add_hand_over(CLI::App& app, Action& action);
void add_inject(CLI::App& app, Action& action);
void add_run(CLI::App& app, Action& action);
void add_soak(CLI::App& app, Action& action);
void add_status(CLI::App& app, Action& action);
void add_stop(CLI::App& app, Action& action);
void add_victim(CLI::App& app, Action& action);
void add_watch(CLI::App& app, Action& action);

/// Prints "firebreak: MESSAGE (HINT)" on standard error; returns 1.
int complain(const std::string& message);

/// The folder that holds the running program; empty where that cannot be known.
std::string program_folder();

}  // namespace firebreak::cli
