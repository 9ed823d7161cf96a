// SPDX-License-Identifier: Apache-2.0
#include "demo/theatre.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <iterator>

namespace firebreak::demo {

std::string Theatre::output_path(Act act, const std::string& tenant) const {
  return fmt::format("{}/{}-{}", settings.directory, tenant, static_cast<int>(act));
}

std::vector<std::string> Theatre::tenant_command(Act act, const std::string& tenant) const {
  return {settings.programs + "/firebreak-" + tenant,
          "--size",
          settings.size,
          "--steps",
          std::to_string(settings.steps),
          "--seed",
          std::to_string(settings.seed),
          "--output",
          output_path(act, tenant),
          "--pace-ms",
          std::to_string(settings.pace.count()),
          "--progress",
          "--start-on-input"};
}

std::vector<std::string> Theatre::rogue_command(const std::string& fault) const {
  return {settings.programs + "/firebreak-lab", "inject", fault, "--wait"};
}

Result<Actor*> enter_rogue(Stage& stage, Rogue& rogue, const Casting& casting) {
  auto entered = stage.enter(casting, [&rogue](const std::string& line) { rogue.told.hear(line); });
  if (entered) rogue.actor = *entered;
  return entered;
}

bool all_ended(const std::vector<Actor*>& actors) {
  return std::ranges::all_of(actors, [](const Actor* actor) { return actor->ended(); });
}

std::vector<std::string> under_the_agent(const Theatre& theatre, const Company& company,
                                         const std::string& tenant, bool standby,
                                         std::vector<std::string> command) {
  std::vector<std::string> whole = {
      theatre.settings.programs + "/firebreak", "run", "--socket", company.socket_path, "--name", tenant};
  if (standby) whole.push_back("--standby");
  whole.push_back(without_parts);
  whole.push_back("--");
  whole.insert(whole.end(), std::make_move_iterator(command.begin()), std::make_move_iterator(command.end()));
  return whole;
}

Status raise_the_agent(const Theatre& theatre, Company& company, const std::string& folder,
                       const std::vector<std::string>& arguments) {
  const std::string directory = theatre.settings.directory + "/" + folder;
  company.socket_path = directory + "/agent.sock";
  std::vector<std::string> command = {theatre.settings.programs + "/firebreakd", "--end-domains",
                                      "--directory", directory};
  command.insert(command.end(), arguments.begin(), arguments.end());
  auto agent = company.stage->enter({"agent", "agent", command, theatre.platform.environment},
                                    [&company](const std::string&) { company.agent_listens = true; });
  if (!agent) return propagate(agent);
  company.agent = *agent;
  auto up = company.stage->wait("the agent's start", theatre.settings.patience,
                                [&] { return company.agent_listens || company.agent->ended(); });
  if (!up) return up;
  if (!company.agent_listens)
    return fail(ErrorCode::Unavailable, "the agent did not start: " + company.agent->record().last_words);
  return company.stage->listen_to_agent(company.socket_path);
}

Status let_the_agent_end(const Theatre& theatre, Company& company) {
  if (company.agent == nullptr) return {};
  company.agent->signal(SIGTERM);
  return company.stage->wait("the agent's end", theatre.settings.patience,
                             [&] { return company.agent->ended(); });
}

}  // namespace firebreak::demo
