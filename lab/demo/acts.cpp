// SPDX-License-Identifier: Apache-2.0
#include "demo/acts.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <ctime>

#include "agent/domains/mps/domain.h"
#include "demo/output.h"
#include "demo/parked_act.h"
#include "demo/theatre.h"

namespace firebreak::demo {
namespace {

constexpr const char* tenants[] = {"decode", "denoise"};

/// A tenth of the way: late enough to have committed, early enough that nobody has finished when the fault
/// strikes, however unequal their speeds.
bool under_way(const Stage& stage, const std::vector<Actor*>& actors, std::uint64_t steps) {
  return std::ranges::all_of(actors,
                             [&](const Actor* actor) { return stage.steps_done(*actor) >= steps / 10; });
}

/// Plays without Firebreak, with everybody in one MPS domain. The rogue fires where the act wants it.
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
  auto entered = enter_rogue(**stage, rogue,
                             {"rogue", "rogue", theatre.rogue_command(theatre.settings.fault), environment});
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
  auto command =
      under_the_agent(theatre, company, "rogue", false, theatre.rogue_command(theatre.settings.fault));
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
  // The act is about failover: the end of a dead rogue's kernel is not waited for, which would spare
  // everybody.
  Status status = raise_the_agent(theatre, company, "fb", {"--hold-s", "0"});
  if (status) status = enter_tenants(theatre, company, false, abi::EventKind::Joined);
  if (status) status = enter_tenants(theatre, company, true, abi::EventKind::Ready);
  if (status) status = play_the_fault(theatre, company);
  const Status ended = let_the_agent_end(theatre, company);
  if (status) status = ended;
  record.rogue = company.rogue.told.report;
  company.stage->report(record, company.agent);
  return status;
}

ActRecord play_act(const Theatre& theatre, Act act, const std::vector<Output>& reference) {
  ActRecord record;
  record.act = act;
  record.began_at_ns = to_ns(theatre.clock.now());
  const Status played = act == Act::Firebreak ? play_with_firebreak(theatre, record)
                        : act == Act::Parked  ? play_parked(theatre, record)
                                              : play_in_one_domain(theatre, act, record);
  record.ended_at_ns = to_ns(theatre.clock.now());
  if (!played) record.problem = to_string(played.error());
  if (act == Act::Parked) return record;
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
  play.parked_faults = settings.parked_faults;
  std::vector<Output> reference;
  for (Act act : {Act::Reference, Act::StockMps, Act::Firebreak, Act::Parked}) {
    if (act == Act::Parked && settings.parked_faults.empty()) break;
    tell(fmt::format("act {}: {}", static_cast<int>(act), title(act)));
    play.acts.push_back(play_act(theatre, act, reference));
    if (!play.acts.back().problem.empty()) break;
    if (act != Act::Reference) continue;
    for (const char* tenant : tenants)
      reference.push_back(read_output(*platform.kernel, theatre.output_path(act, tenant)));
  }
  if (play.acts.size() >= 3) play.recoveries = recoveries_of(play.acts[2]);
  return play;
}

}  // namespace firebreak::demo
