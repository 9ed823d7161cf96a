// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include "commands/commands.h"
#include "ground/platform/machine.h"

int main(int argument_count, char** arguments) {
  using namespace firebreak;
  CLI::App app{"Firebreak's laboratory: raises faults, shows what comes of them, and measures."};
  app.require_subcommand(1);
  app.set_version_flag("--version", "firebreak-lab " + platform::version());
  app.footer("FIREBREAK_GPU=auto|real|soft chooses the GPU; without a real one the software GPU is used.");
  cli::Action action;
  commands::add_characterize(app, action);
  commands::add_demo(app, action);
  commands::add_inject(app, action);
  commands::add_soak(app, action);
  commands::add_victim(app, action);
  return cli::run_program(app, action, argument_count, arguments, cli::GpuWords::Either);
}
