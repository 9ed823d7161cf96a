// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <vector>

#include "commands/cli/commands.h"
#include "ground/pages/pages.h"
#include "ground/platform/machine.h"

namespace {

/// Those of the manual.
std::vector<firebreak::pages::Example> examples() {
  return {
      {"Says what this machine offers, and what is missing", "firebreak doctor"},
      {"Runs a program on a shared GPU; it is protected as far as it can be",
       "firebreak run -- python3 serve.py"},
      {"The same with a name, a quarter of the SMs and 8 GiB",
       "firebreak run --name llm --sm-percent 25 --memory-mib 8192 -- python3 serve.py"},
      {"Runs a program that calls firebreak.h with a standby, which goes on in its place",
       "firebreak run --pair --name llm -- ./server"},
      {"Shows who is there, once and for programs", "firebreak status --json"},
      {"Tells of every fault on this machine as it happens", "firebreak watch --all"},
      {"Ends a tenant, which has ten seconds for that", "firebreak stop --grace-ms 10000 llm"},
      {"Takes a tenant off the GPU for a while", "firebreak suspend llm && firebreak resume llm"},
  };
}

}  // namespace

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
  cli::add_logs(app, action);
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
  const pages::Subject subject{
      "firebreak", 1, platform::version(), examples(), {cli::tenant_type, "status --names", "--socket"}};
  if (pages::print_if_asked(app, subject, argument_count, arguments)) return 0;
  return cli::run_program(app, action, argument_count, arguments);
}
