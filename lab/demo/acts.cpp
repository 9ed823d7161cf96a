// SPDX-License-Identifier: Apache-2.0
#include "demo/acts.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <ctime>

#include "demo/output.h"
#include "demo/stage.h"
#include "mps/domain.h"
#include "stage/fault_report.h"

namespace firebreak::demo {
namespace {

constexpr const char* tenants[] = {"decode", "denoise"};

/// What all acts share.
struct Theatre {
  const Settings& settings;
  platform::Platform& platform;
  const Clock& clock;

  std::string output_path(Act act, const std::string& tenant) const {
    return fmt::format("{}/{}-{}", settings.directory, tenant, static_cast<int>(act));
  }
  std::vector<std::string> tenant_command(Act act, const std::string& tenant) const {
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
  std::vector<std::string> rogue_command() const {
    return {settings.programs + "/firebreak-lab", "inject", settings.fault, "--wait"};
  }
};

/// The rogue, and what it has said.
struct Rogue {
  Actor* actor = nullptr;
  stage::FaultListener told;
};

Result<Actor*> enter_rogue(Stage& stage, Rogue& rogue, const Casting& casting) {
  auto entered = stage.enter(casting, [&rogue](const std::string& line) { rogue.told.hear(line); });
  if (entered) rogue.actor = *entered;
  return entered;
}

bool all_ended(const std::vector<Actor*>& actors) {
  return std::ranges::all_of(actors, [](const Actor* actor) { return actor->ended(); });
}

/// A tenth of the way: late enough to have committed, early enough that nobody has finished when the fault
/// strikes, however unequal their speeds.
bool under_way(const Stage& stage, const std::vector<Actor*>& actors, std::uint64_t steps) {
  return std::ranges::all_of(actors,
                             [&](const Actor* actor) { return stage.steps_done(*actor) >= steps / 10; });
}

/// Without Firebreak: everybody in one MPS domain. Fires the rogue where the act wants it.
Status play_in_one_domain(const Theatre& theatre, Act act, ActRecord& record) {
  mps::DomainOptions options;
  options.name = "stock";
  options.directory = fmt::format("{}/m{}", theatre.settings.directory, static_cast<int>(act));
  options.control_program = theatre.platform.control_program;
  options.environment = theatre.platform.environment;
  auto domain = mps::Domain::start(*theatre.platform.kernel, options);
  if (!domain) return propagate(domain);
  mps::Environment environment = theatre.platform.environment;
  for (auto& variable : (*domain)->client_environment()) environment.push_back(std::move(variable));

  auto stage = Stage::create(*theatre.platform.kernel, theatre.clock);
  if (!stage) return propagate(stage);
  const Milliseconds patience = theatre.settings.patience;
  Rogue rogue;
  std::vector<Actor*> actives;
  for (const char* tenant : tenants) {
    auto command = theatre.tenant_command(act, tenant);
    command.push_back("--standalone");
    auto actor = (*stage)->enter({tenant, "active", command, environment});
    if (!actor) return propagate(actor);
    actives.push_back(*actor);
  }
  auto entered = enter_rogue(**stage, rogue, {"rogue", "rogue", theatre.rogue_command(), environment});
  if (!entered) return propagate(entered);
  Status status = (*stage)->wait("the rogue's preparation", patience, [&] { return rogue.told.prepared; });
  for (Actor* active : actives) active->tell("start");
  if (status && act == Act::StockMps) {
    status = (*stage)->wait("the tenants' progress", patience, [&] {
      return under_way(**stage, actives, theatre.settings.steps) || all_ended(actives);
    });
    if (status) rogue.actor->tell("go");
  }
  if (status) status = (*stage)->wait("the tenants' end", patience, [&] { return all_ended(actives); });
  rogue.actor->close_input();
  if (status) status = (*stage)->wait("the rogue's end", patience, [&] { return rogue.actor->ended(); });
  record.rogue = rogue.told.report;
  (*stage)->report(record);
  return status;
}

/// The third act's own props.
struct Company {
  std::unique_ptr<Stage> stage;
  Actor* agent = nullptr;
  bool agent_listens = false;
  std::string socket_path;
  std::vector<Actor*> actives;
  std::vector<Actor*> standbys;
  Rogue rogue;
};

std::vector<std::string> under_the_agent(const Theatre& theatre, const Company& company,
                                         const std::string& tenant, bool standby,
                                         std::vector<std::string> command) {
  std::vector<std::string> whole = {
      theatre.settings.programs + "/firebreak", "run", "--socket", company.socket_path, "--name", tenant};
  if (standby) whole.push_back("--standby");
  whole.push_back("--");
  whole.insert(whole.end(), std::make_move_iterator(command.begin()), std::make_move_iterator(command.end()));
  return whole;
}

Status raise_the_agent(const Theatre& theatre, Company& company) {
  const std::string directory = theatre.settings.directory + "/fb";
  company.socket_path = directory + "/agent.sock";
  // The play is about failover: the end of a dead rogue's kernel is not waited for, which would spare
  // everybody.
  auto agent = company.stage->enter(
      {"agent",
       "agent",
       {theatre.settings.programs + "/firebreakd", "--directory", directory, "--hold-s", "0"},
       theatre.platform.environment},
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

/// Starts one process a tenant and waits until the agent has told `event` of each.
Status enter_tenants(const Theatre& theatre, Company& company, bool standby, abi::EventKind event) {
  std::vector<Actor*>& group = standby ? company.standbys : company.actives;
  for (const char* tenant : tenants) {
    auto command =
        under_the_agent(theatre, company, tenant, standby, theatre.tenant_command(Act::Firebreak, tenant));
    auto actor = company.stage->enter({tenant, standby ? "standby" : "active", command, {}});
    if (!actor) return propagate(actor);
    group.push_back(*actor);
  }
  const auto all_told = [&] {
    return std::ranges::all_of(tenants,
                               [&](const char* tenant) { return company.stage->count(event, tenant) > 0; });
  };
  const std::string what = standby ? "the standbys' readiness" : "the actives' start";
  return company.stage->wait(what, theatre.settings.patience, [&] { return all_told(); });
}

Status play_the_fault(const Theatre& theatre, Company& company) {
  const Milliseconds patience = theatre.settings.patience;
  auto command = under_the_agent(theatre, company, "rogue", false, theatre.rogue_command());
  auto entered = enter_rogue(*company.stage, company.rogue, {"rogue", "rogue", command, {}});
  if (!entered) return propagate(entered);
  Status status =
      company.stage->wait("the rogue's preparation", patience, [&] { return company.rogue.told.prepared; });
  if (!status) return status;
  for (Actor* active : company.actives) active->tell("start");
  status = company.stage->wait("the tenants' progress", patience, [&] {
    return under_way(*company.stage, company.actives, theatre.settings.steps) || all_ended(company.actives);
  });
  if (!status) return status;
  company.rogue.actor->tell("go");
  std::vector<Actor*> everybody = company.actives;
  everybody.insert(everybody.end(), company.standbys.begin(), company.standbys.end());
  everybody.push_back(company.rogue.actor);
  return company.stage->wait("the tenants' end", patience, [&] { return all_ended(everybody); });
}

Status play_with_firebreak(const Theatre& theatre, ActRecord& record) {
  auto stage = Stage::create(*theatre.platform.kernel, theatre.clock);
  if (!stage) return propagate(stage);
  Company company;
  company.stage = std::move(*stage);
  Status status = raise_the_agent(theatre, company);
  if (status) status = enter_tenants(theatre, company, false, abi::EventKind::Joined);
  if (status) status = enter_tenants(theatre, company, true, abi::EventKind::Ready);
  if (status) status = play_the_fault(theatre, company);
  if (company.agent != nullptr) {
    company.agent->signal(SIGTERM);
    const Status ended = company.stage->wait("the agent's end", theatre.settings.patience,
                                             [&] { return company.agent->ended(); });
    if (status) status = ended;
  }
  record.rogue = company.rogue.told.report;
  company.stage->report(record, company.agent);
  return status;
}

ActRecord play_act(const Theatre& theatre, Act act, const std::vector<Output>& reference) {
  ActRecord record;
  record.act = act;
  record.began_at_ns = to_ns(theatre.clock.now());
  const Status played =
      act == Act::Firebreak ? play_with_firebreak(theatre, record) : play_in_one_domain(theatre, act, record);
  record.ended_at_ns = to_ns(theatre.clock.now());
  if (!played) record.problem = to_string(played.error());
  for (std::size_t i = 0; i < std::size(tenants); ++i) {
    const Output output = read_output(*theatre.platform.kernel, theatre.output_path(act, tenants[i]));
    TenantOutcome outcome{tenants[i], {}, output.bytes.size(), false};
    if (output.exists) outcome.output_hash = hash(output);
    outcome.same_as_reference = reference.size() > i && output.exists && output.bytes == reference[i].bytes;
    record.outcomes.push_back(std::move(outcome));
  }
  return record;
}

}  // namespace

Play play(const Settings& settings, platform::Platform& platform, const Clock& clock,
          const std::function<void(const std::string&)>& tell) {
  const Theatre theatre{settings, platform, clock};
  Play play;
  play.gpu = platform::to_string(platform.gpu);
  play.fault = settings.fault;
  play.spares_co_clients = settings.spares_co_clients;
  play.date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
  std::vector<Output> reference;
  for (Act act : {Act::Reference, Act::StockMps, Act::Firebreak}) {
    tell(fmt::format("act {}: {}", static_cast<int>(act), title(act)));
    play.acts.push_back(play_act(theatre, act, reference));
    if (!play.acts.back().problem.empty()) break;
    if (act != Act::Reference) continue;
    for (const char* tenant : tenants)
      reference.push_back(read_output(*platform.kernel, theatre.output_path(act, tenant)));
  }
  if (play.acts.size() == 3) play.recoveries = recoveries_of(play.acts.back());
  return play;
}

}  // namespace firebreak::demo
