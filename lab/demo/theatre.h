// SPDX-License-Identifier: Apache-2.0
/// The theatre has what the acts share: how tenants, the rogue, and an agent with those who run under it are
/// started.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "demo/acts.h"
#include "demo/stage.h"
#include "stage/fault_report.h"

namespace firebreak::demo {

/// Data that all acts share.
struct Theatre {
  const Settings& settings;
  platform::Platform& platform;
  const Clock& clock;

  std::string output_path(Act act, const std::string& tenant) const;
  std::vector<std::string> tenant_command(Act act, const std::string& tenant) const;
  std::vector<std::string> rogue_command(const std::string& fault) const;
};

/// The rogue, and what it has said.
struct Rogue {
  Actor* actor = nullptr;
  stage::FaultListener told;
};

/// `rogue` has to outlive the stage.
Result<Actor*> enter_rogue(Stage& stage, Rogue& rogue, const Casting& casting);

bool all_ended(const std::vector<Actor*>& actors);

/// The props of an act with an agent.
struct Company {
  std::unique_ptr<Stage> stage;
  Actor* agent = nullptr;
  bool agent_listens = false;
  std::string socket_path;
  std::vector<Actor*> actives;
  std::vector<Actor*> standbys;
  Rogue rogue;
};

/// Acts that are not about guard ranges and spares show what happens without them.
inline constexpr const char* without_parts = "--without=guard,spare";
/// The command that starts that one as a tenant, without these.
std::vector<std::string> under_the_agent(const Theatre& theatre, const Company& company,
                                         const std::string& tenant, bool standby,
                                         std::vector<std::string> command);

/// Starts the agent in that folder of the play's directory, with further arguments, and listens to it.
Status raise_the_agent(const Theatre& theatre, Company& company, const std::string& folder,
                       const std::vector<std::string>& arguments);
/// Ends the agent where there is one, and returns when it has ended.
Status let_the_agent_end(const Theatre& theatre, Company& company);

}  // namespace firebreak::demo
