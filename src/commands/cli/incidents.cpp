// SPDX-License-Identifier: Apache-2.0
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "commands/cli/agent_socket.h"
#include "commands/cli/commands.h"
#include "ground/base/clock.h"
#include "shared/link/agent_link.h"

namespace firebreak::cli {
namespace {

using nlohmann::json;

/// At that moment of CLOCK_MONOTONIC, by the wall clock of today.
std::string wall_time(std::int64_t at_ns) {
  const Nanoseconds ago = SystemClock().now() - from_ns(at_ns);
  const auto then =
      std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now() - ago);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(std::chrono::system_clock::to_time_t(then)));
}

void print(const json& fault) {
  const auto word = [&fault](const char* name) {
    const std::string text = fault.value(name, "");
    return text.empty() ? std::string("-") : text;
  };
  fmt::print("{}  {:<18} {:<11} {:<6} {:<16} {}\n", wall_time(fault.value("at_ns", std::int64_t{0})),
             word("class"), word("outcome"), word("domain"), word("culprit"), word("what"));
}

int run(const std::string& socket_path, bool as_json) {
  auto link = link::AgentLink::connect(socket_path);
  if (!link) return complain(to_string(link.error()));
  const auto status = (*link)->status();
  if (!status) return complain(to_string(status.error()));
  const json document = json::parse(*status, nullptr, false);
  const json counts = document.is_object() ? document.value("counts", json()) : json();
  if (!counts.is_object() || !counts.contains("past_faults"))
    return complain(
        "the agent does not tell: it is older than this program, or this is the tenants' socket "
        "(ask as root)");
  const json& faults = counts["past_faults"];
  if (as_json) {
    fmt::print("{}\n", faults.dump(2));
    return 0;
  }
  if (faults.empty()) fmt::print("no faults\n");
  if (!faults.empty()) {
    fmt::print("{:<19}  {:<18} {:<11} {:<6} {:<16} {}\n", "WHEN", "CLASS", "OUTCOME", "DOMAIN", "CULPRIT",
               "WHAT");
  }
  for (const json& each : faults) print(each);
  return 0;
}

}  // namespace

void add_incidents(CLI::App& app, Action& action) {
  auto socket_path = std::make_shared<std::string>();
  auto as_json = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("incidents", "Shows the last faults, and what came of each for other tenants");
  command->footer(
      "The last 64, also of agents before, since the machine or the service was started. contained: nothing "
      "came of it; parked: others left its domain; failed_over: a standby went on; lost: somebody "
      "ended.");
  command->add_flag("--json", *as_json, "One JSON document, for programs");
  add_socket_option(*command, *socket_path);
  command->callback([socket_path, as_json, &action] {
    action = [socket_path, as_json] { return run(*socket_path, *as_json); };
  });
}

}  // namespace firebreak::cli
