// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/command.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstdio>
#include <exception>

#include "ground/base/log.h"
#include "ground/os/fd.h"
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

/// What was printed may still wait to be written, and its disk may be full by then: who reads it is not to
/// take a part for the whole.
int status_once_written(const CLI::App& app, int status) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  const int failed = complain(to_string(os::fail_errno("write standard output", errno).value()));
  if (status != 0) return status;
  return is_of_run(app) ? own_failure_status : failed;
}

/// The program's status, where its words are understood.
int act(const CLI::App& app, const Action& action, GpuWords words) {
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

}  // namespace

int run_program(CLI::App& app, const Action& action, int argument_count, char** arguments, GpuWords words) {
  if (const auto status = pages::read_arguments(app, program_name(), argument_count, arguments)) {
    const int its = *status == pages::usage_status && is_of_run(app) ? own_failure_status : *status;
    return status_once_written(app, its);
  }
  return status_once_written(app, act(app, action, words));
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
