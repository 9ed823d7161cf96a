// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "agent/parking/park/evidence_folder.h"
#include "commands/cli/agent_socket.h"
#include "commands/cli/commands.h"
#include "ground/os/owned_file.h"

namespace firebreak::cli {
namespace {

struct Options {
  std::string id;
  bool as_json = false;
  std::string socket_path;
  std::string folder;
};

/// One line each, the oldest first. Another user's are counted.
int list(const std::string& folder) {
  int hidden = 0;
  int shown = 0;
  for (const std::string& id : park::evidence_ids(folder)) {
    const auto evidence = park::read_evidence(folder, id);
    if (!evidence) {
      ++hidden;
      continue;
    }
    ++shown;
    const std::string& kernel = evidence->exception.kernel;
    fmt::print("{}  {}{}\n", id, evidence->exception.type, kernel.empty() ? "" : " in " + kernel);
  }
  if (hidden > 0)
    fmt::print("{} more that are not for you to read{}\n", hidden,
               os::has_access_lists(folder) ? "" : ": the file system has no access control lists");
  if (hidden + shown == 0) fmt::print("no exception has been parked: {} holds none\n", folder);
  return 0;
}

int list_as_json(const std::string& folder) {
  std::string all;
  for (const std::string& id : park::evidence_ids(folder)) {
    const auto evidence = park::read_evidence(folder, id);
    if (evidence) all += (all.empty() ? "" : ",\n") + park::to_json(*evidence);
  }
  fmt::print("[{}]\n", all);
  return 0;
}

int run(const Options& options) {
  const std::string folder = options.folder.empty() ? report_folder(options.socket_path) : options.folder;
  if (options.id.empty()) return options.as_json ? list_as_json(folder) : list(folder);
  const auto evidence = park::read_evidence(folder, options.id);
  if (!evidence) return complain(to_string(evidence.error()));
  fmt::print("{}", options.as_json ? park::to_json(*evidence)
                                   : park::to_text(*evidence, park::dump_path_of(folder, options.id)));
  return 0;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "report", "Tells of exceptions in parked domains: kernel, PC, what happened and who was there");
  command->add_option("ID", options->id, "Which one; without it all are listed");
  command->add_flag("--json", options->as_json, "All that is known, for programs");
  command->add_option("--folder", options->folder,
                      "Where the agent keeps them (default: core-dumps beside its socket)");
  add_socket_option(*command, options->socket_path);
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace firebreak::cli
