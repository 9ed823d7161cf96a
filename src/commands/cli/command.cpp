// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/command.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "ground/base/log.h"
#include "ground/os/self.h"

namespace firebreak::cli {
namespace {

/// "firebreak", as the file is called.
std::string program_name() {
  const auto program = os::executable_path();
  return program ? program->substr(program->rfind('/') + 1) : "firebreak";
}

}  // namespace

int run_program(CLI::App& app, const Action& action, int argument_count, char** arguments) {
  CLI11_PARSE(app, argument_count, arguments);
  set_up_logging(program_name());
  try {
    return action();
  } catch (const std::exception& unexpected) {
    return complain(unexpected.what());
  }
}

int complain(const std::string& message) {
  fmt::print(stderr, "{}: {}\n", program_name(), message);
  return 1;
}

std::string program_folder() {
  const auto program = os::executable_path();
  return program ? program->substr(0, program->rfind('/')) : std::string();
}

}  // namespace firebreak::cli
