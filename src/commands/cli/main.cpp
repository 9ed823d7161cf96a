// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include "commands/cli/commands.h"
#include "ground/pages/pages.h"
#include "ground/platform/machine.h"

int main(int argument_count, char** arguments) {
  using namespace firebreak;
  CLI::App app{"Firebreak keeps the other tenants of a shared GPU alive when one of them faults."};
  app.require_subcommand(1);
  app.set_version_flag("--version", "firebreak " + platform::version());
  app.footer(
      "FIREBREAK_GPU=real|soft chooses the GPU (default: real); soft is for trying Firebreak without one.");
  cli::Action action;
  cli::add_cdi(app, action);
  cli::add_doctor(app, action);
  cli::add_explain(app, action);
  cli::add_faults(app, action);
  cli::add_guard_probe(app, action);
  cli::add_hand_over(app, action);
  cli::add_incidents(app, action);
  cli::add_recovered(app, action);
  cli::add_report(app, action);
  cli::add_resume(app, action);
  cli::add_run(app, action);
  cli::add_shutdown(app, action);
  cli::add_spare_probe(app, action);
  cli::add_status(app, action);
  cli::add_stop(app, action);
  cli::add_suspend(app, action);
  cli::add_top(app, action);
  cli::add_watch(app, action);
  if (pages::print_if_asked(app, {"firebreak", 1, platform::version()}, argument_count, arguments)) return 0;
  return cli::run_program(app, action, argument_count, arguments);
}
