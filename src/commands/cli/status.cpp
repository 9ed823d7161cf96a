// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "commands/cli/agent_socket.h"
#include "commands/cli/commands.h"
#include "commands/cli/status_text.h"
#include "shared/link/agent_link.h"
#include "shared/link/status_view.h"

namespace firebreak::cli {
namespace {

enum class Form { Text, Json, Names };

std::string as(Form form, const std::string& status) {
  if (form == Form::Json) return status + "\n";
  if (form == Form::Text) return status_text(status) + "\n";
  std::string names;
  for (const auto& [name, tenant] : link::parse_status(status).tenants) names += name + "\n";
  return names;
}

int run(const std::string& socket_path, Form form) {
  auto link = link::AgentLink::connect(socket_path);
  if (!link) return complain(to_string(link.error()));
  const auto status = (*link)->status();
  if (!status) return complain(to_string(status.error()));
  fmt::print("{}", as(form, *status));
  return 0;
}

}  // namespace

void add_status(CLI::App& app, Action& action) {
  auto socket_path = std::make_shared<std::string>();
  auto form = std::make_shared<Form>(Form::Text);
  CLI::App* command = app.add_subcommand("status", "Shows the agent's MPS domains and tenants");
  CLI::Option* json = command->add_flag_callback(
      "--json", [form] { *form = Form::Json; }, "All that the agent says, for programs");
  command
      ->add_flag_callback(
          "--names", [form] { *form = Form::Names; }, "The tenants' names alone, one a line")
      ->excludes(json);
  add_socket_option(*command, *socket_path);
  command->callback(
      [socket_path, form, &action] { action = [socket_path, form] { return run(*socket_path, *form); }; });
}

}  // namespace firebreak::cli
