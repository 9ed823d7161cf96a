// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "guard/trial.h"
#include "platform/platform.h"

namespace firebreak::cli {
namespace {

int try_guard() {
  guard::Verdict verdict;
  if (auto platform = platform::choose()) {
    verdict = guard::try_blanket(*platform->kernel, platform->cuda_library);
  } else {
    verdict.reason = platform.error().message;
  }
  fmt::print("{}\n", verdict.reason);
  return guard::exit_status_of(verdict);
}

}  // namespace

void add_guard_trial(CLI::App& app, Action& action) {
  // An empty group keeps it out of the help: it is for `run --guard`, the agent and `doctor`.
  CLI::App* command =
      app.add_subcommand("guard-trial", "Strays into a blanket of its own; dies where that does not work")
          ->group("");
  command->callback([&action] { action = try_guard; });
}

}  // namespace firebreak::cli
