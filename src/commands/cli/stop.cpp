// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "commands/cli/agent_socket.h"
#include "commands/cli/commands.h"
#include "shared/link/agent_link.h"

namespace firebreak::cli {
namespace {

struct Options {
  std::string socket_path;
  std::string name;
  std::uint32_t grace_ms = 2000;
  bool force = false;
};

/// What MPS, a fault that has to pass first, and the agent itself may take beyond the grace.
constexpr Milliseconds beyond_grace{10'000};

Status stop(const Options& options) {
  auto link = link::AgentLink::connect(options.socket_path);
  if (!link) return propagate(link);
  const auto answer = (*link)->ask(abi::EndTenant{options.name, options.grace_ms, options.force}, -1,
                                   Milliseconds(options.grace_ms) + beyond_grace);
  if (!answer && answer.error().code == ErrorCode::Timeout) {
    return fail(ErrorCode::Timeout, fmt::format("tenant '{}' has not ended", options.name),
                "a process that does not even die of SIGKILL hangs inside the driver");
  }
  if (!answer) return propagate(answer);
  const auto* ended = std::get_if<abi::Ended>(&answer->message);
  if (ended == nullptr) return fail(ErrorCode::Protocol, "the agent did not say how it ended");
  fmt::print("{} has ended: {}\n", options.name, ended->text);
  return {};
}

}  // namespace

void add_stop(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "stop", "Ends a tenant, and its standby, so that those who share its MPS domain go on");
  command->footer("Exit status 0: it is gone. How it ended is printed.");
  command->add_option("NAME", options->name, "The tenant's name")->type_name(tenant_type)->required();
  command->add_option("--grace-ms", options->grace_ms, "Between SIGTERM and SIGKILL")
      ->check(CLI::Range(0, 60'000))
      ->capture_default_str();
  command->add_flag("--force", options->force, "Also where others map memory that it shares: they keep it");
  add_socket_option(*command, options->socket_path);
  command->callback([options, &action] {
    action = [options] {
      const Status stopped = stop(*options);
      return stopped ? 0 : complain(to_string(stopped.error()));
    };
  });
}

}  // namespace firebreak::cli
