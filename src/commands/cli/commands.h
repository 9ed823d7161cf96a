// SPDX-License-Identifier: Apache-2.0
/// The subcommands of `firebreak`, one file each: what is asked of the user, and the call that does it.
#pragma once

#include "commands/cli/command.h"

namespace firebreak::cli {

/// The type of arguments that name a tenant of the agent's: shells complete them.
inline constexpr const char* tenant_type = "TENANT";

// Each adds its subcommand to `app` and, when the user chose it, puts what to do into `action`.
void add_cdi(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);
void add_explain(CLI::App& app, Action& action);
void add_guard_probe(CLI::App& app, Action& action);
void add_hand_over(CLI::App& app, Action& action);
void add_faults(CLI::App& app, Action& action);
void add_incidents(CLI::App& app, Action& action);
void add_logs(CLI::App& app, Action& action);
void add_recovered(CLI::App& app, Action& action);
void add_report(CLI::App& app, Action& action);
void add_resume(CLI::App& app, Action& action);
void add_run(CLI::App& app, Action& action);
void add_spare_probe(CLI::App& app, Action& action);
void add_shutdown(CLI::App& app, Action& action);
void add_status(CLI::App& app, Action& action);
void add_stop(CLI::App& app, Action& action);
void add_suspend(CLI::App& app, Action& action);
void add_top(CLI::App& app, Action& action);
void add_watch(CLI::App& app, Action& action);

}  // namespace firebreak::cli
