// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "commands/cli/commands.h"
#include "ground/platform/platform.h"
#include "program/guard/probe.h"
#include "shared/guard_page/probe_program.h"

namespace firebreak::cli {
namespace {

int try_guard() {
  guard::ProbeResult result;
  if (auto platform = platform::choose()) {
    result = guard::probe_guard_ranges(*platform->kernel, platform->cuda_library);
  } else {
    result.reason = platform.error().message;
  }
  fmt::print("{}\n", result.reason);
  return guard::exit_status_of(result);
}

}  // namespace

void add_guard_probe(CLI::App& app, Action& action) {
  // An empty group keeps it out of the help: it is for `run --guard`, the agent and `doctor`.
  CLI::App* command =
      app.add_subcommand("guard-probe", "Strays into guard ranges of its own; dies where that does not work")
          ->group("");
  command->callback([&action] { action = try_guard; });
}

}  // namespace firebreak::cli
