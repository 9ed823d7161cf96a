// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "commands/cli/agent_socket.h"
#include "commands/cli/commands.h"
#include "commands/cli/status_text.h"
#include "shared/link/agent_link.h"

namespace firebreak::cli {
namespace {

int run(const std::string& socket_path, bool as_json) {
  auto link = link::AgentLink::connect(socket_path);
  if (!link) return complain(to_string(link.error()));
  const auto status = (*link)->status();
  if (!status) return complain(to_string(status.error()));
  fmt::print("{}\n", as_json ? *status : status_text(*status));
  return 0;
}

}  // namespace

void add_status(CLI::App& app, Action& action) {
  auto socket_path = std::make_shared<std::string>();
  auto as_json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("status", "Shows the agent's MPS domains and tenants");
  command->add_flag("--json", *as_json, "All that the agent says, for programs");
  add_socket_option(*command, *socket_path);
  command->callback([socket_path, as_json, &action] {
    action = [socket_path, as_json] { return run(*socket_path, *as_json); };
  });
}

}  // namespace firebreak::cli
