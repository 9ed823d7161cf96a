// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "agent/parking/park/evidence_folder.h"
#include "commands/cli/agent_socket.h"
#include "commands/cli/commands.h"
#include "commands/cli/fault_list.h"
#include "commands/cli/fault_text.h"
#include "ground/base/text.h"

namespace firebreak::cli {
namespace {

using nlohmann::json;

struct FaultsOptions {
  std::string socket_path;
  std::string tenant;  ///< of `logs`
  std::string what;    ///< "show"; empty: the list
  std::string id;
  bool as_json = false;
  bool follows = false;
};

Result<json> faults_at(const std::string& socket_path) {
  auto agent = link::AgentLink::connect(socket_path);
  if (!agent) return propagate(agent);
  return faults_of(**agent);
}

int list(const FaultsOptions& options) {
  const auto faults = faults_at(options.socket_path);
  if (!faults) return complain(to_string(faults.error()));
  if (options.as_json) {
    fmt::print("{}\n", faults->dump(2));
    return 0;
  }
  fmt::print("{}", faults->empty() ? "no faults\n" : fault_head());
  for (const json& each : *faults) fmt::print("{}", fault_line(each, moment_in_utc));
  return 0;
}

/// Tells what is known of the exceptions of that fault, where this user may read it.
void print_reports(const json& fault, const std::string& folder) {
  for (const json& id : fault.value("reports", json::array())) {
    if (!id.is_string()) continue;
    const auto report = park::read_evidence(folder, id.get<std::string>());
    if (report) fmt::print("{}", park::to_text(*report, park::dump_path_of(folder, report->id)));
    if (!report) fmt::print("report {}: {}\n", printable(id.get<std::string>()), to_string(report.error()));
  }
}

int show(const FaultsOptions& options) {
  if (options.id.empty()) return complain("which fault? (firebreak faults lists their ids)");
  const auto faults = faults_at(options.socket_path);
  if (!faults) return complain(to_string(faults.error()));
  const json* const fault = find_fault(*faults, options.id);
  if (fault == nullptr)
    return complain(fmt::format("there is no fault '{}' among the last ones (firebreak faults lists them)",
                                printable(options.id)));
  if (options.as_json) {
    fmt::print("{}\n", fault->dump(2));
    return 0;
  }
  fmt::print("{}", fault_account(*fault, moment_in_utc));
  print_reports(*fault, report_folder(options.socket_path));
  return 0;
}

int run(const FaultsOptions& options) {
  if (!options.what.empty()) return show(options);
  if (!options.follows) return list(options);
  const Status done = follow_faults(options.socket_path, options.as_json);
  return done ? 0 : complain(to_string(done.error()));
}

/// What one tenant had of them.
int run_logs(const FaultsOptions& options) {
  const auto words = [&](const json& fault) { return fault_line_of(fault, options.tenant, moment_in_utc); };
  if (options.follows) {
    const Status done = follow_faults(options.socket_path, "", words);
    return done ? 0 : complain(to_string(done.error()));
  }
  const auto faults = faults_at(options.socket_path);
  if (!faults) return complain(to_string(faults.error()));
  for (const json& each : *faults) fmt::print("{}", words(each));
  return 0;
}

}  // namespace

void add_faults(CLI::App& app, Action& action) {
  auto options = std::make_shared<FaultsOptions>();
  CLI::App* command = app.add_subcommand(
      "faults", "Lists the last faults, follows them, or tells all that is known of one (faults show ID)");
  command->footer(
      "The last 64, also of agents before, since the machine or the service was started. contained: nothing "
      "came of it; parked: others left its domain; failed_over: a standby went on; lost: somebody ended. The "
      "same ids stand in the agent's log and events, in metrics and in Kubernetes. Times are in UTC.");
  command->add_option("WHAT", options->what, "To tell all of one fault")->check(CLI::IsMember({"show"}));
  command->add_option("ID", options->id, "Which one");
  command->add_flag("--json", options->as_json, "One JSON document, or with --follow one a line");
  command->add_flag("--follow", options->follows, "Print the list, and each fault as soon as it is over");
  add_socket_option(*command, options->socket_path);
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

void add_logs(CLI::App& app, Action& action) {
  auto options = std::make_shared<FaultsOptions>();
  CLI::App* command = app.add_subcommand("logs", "Tells what a tenant had of the last faults");
  command->footer(
      "A line for each fault that was its own, or a neighbour's: whether it went on, left its domain, or "
      "ended. "
      "`firebreak faults show ID` tells all of one. Nothing is printed for a tenant that had none.");
  command->add_option("NAME", options->tenant, "The tenant's name")->type_name(tenant_type)->required();
  command->add_flag("--follow", options->follows, "Go on, with each fault as soon as it is over");
  add_socket_option(*command, options->socket_path);
  command->callback([options, &action] { action = [options] { return run_logs(*options); }; });
}

/// The name that `firebreak faults` had before.
void add_incidents(CLI::App& app, Action& action) {
  auto options = std::make_shared<FaultsOptions>();
  CLI::App* command = app.add_subcommand("incidents", "The old name of `firebreak faults`");
  command->add_flag("--json", options->as_json, "One JSON document, for programs");
  add_socket_option(*command, options->socket_path);
  command->callback([options, &action] { action = [options] { return list(*options); }; });
}

}  // namespace firebreak::cli
