// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/command.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <exception>

#include "ground/base/log.h"
#include "ground/os/self.h"
#include "ground/pages/arguments.h"
#include "ground/platform/platform.h"

namespace firebreak::cli {
namespace {

/// "firebreak", as the file is called.
std::string program_name() {
  const auto program = os::executable_path();
  return program ? program->substr(program->rfind('/') + 1) : "firebreak";
}

bool is_of_run(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return !chosen.empty() && chosen.front()->get_name() == "run";
}

}  // namespace

int run_program(CLI::App& app, const Action& action, int argument_count, char** arguments, GpuWords words) {
  if (const auto status = pages::read_arguments(app, program_name(), argument_count, arguments))
    return *status == pages::usage_status && is_of_run(app) ? own_failure_status : *status;
  const auto gpu =
      words == GpuWords::Either ? Result<platform::Gpu>(platform::Gpu::Soft) : platform::wanted_gpu();
  if (!gpu) {
    (void)complain(to_string(gpu.error()));
    return is_of_run(app) ? own_failure_status : pages::usage_status;
  }
  set_up_logging(program_name());
  try {
    return action();
  } catch (const std::exception& unexpected) {
    const int status = complain(unexpected.what());
    return is_of_run(app) ? own_failure_status : status;
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
