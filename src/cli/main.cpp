// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/log.h"
#include "cli/commands.h"
#include "os/self.h"
#include "platform/machine.h"

namespace firebreak::cli {

int complain(const std::string& message) {
  fmt::print(stderr, "firebreak: {}\n", message);
  return 1;
}

std::string program_folder() {
  const auto program = os::executable_path();
  return program ? program->substr(0, program->rfind('/')) : std::string();
}

}  // namespace firebreak::cli

int main(int argument_count, char** arguments) {
  using namespace firebreak;
  CLI::App app{"Firebreak keeps the other tenants of a shared GPU alive when one of them faults."};
  app.require_subcommand(1);
  app.set_version_flag("--version", "firebreak " + platform::version());
  app.footer("FIREBREAK_GPU=auto|real|soft chooses the GPU; without a real one the software GPU is used.");
  cli::Action action;
  cli::add_characterize(app, action);
  cli::add_demo(app, action);
  cli::add_doctor(app, action);
  cli::add_guard_trial(app, action);
  cli::add_hand_over(app, action);
  cli::add_inject(app, action);
  cli::add_run(app, action);
  cli::add_soak(app, action);
  cli::add_status(app, action);
  cli::add_stop(app, action);
  cli::add_victim(app, action);
  cli::add_watch(app, action);
  CLI11_PARSE(app, argument_count, arguments);

  set_up_logging("firebreak");
  try {
    return action();
  } catch (const std::exception& unexpected) {
    return cli::complain(unexpected.what());
  }
}
