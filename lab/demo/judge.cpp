// SPDX-License-Identifier: Apache-2.0
#include "demo/judge.h"

#include <fmt/format.h>

#include <algorithm>

#include "demo/parked_judge.h"

namespace firebreak::demo {
namespace {

std::string end_of(const ProcessRecord& process) {
  if (!process.exit) return "still running";
  if (process.exit->signal != 0) return fmt::format("ended by signal {}", process.exit->signal);
  const std::string words = process.last_words.empty() ? "" : fmt::format(" ({})", process.last_words);
  return fmt::format("exit status {}{}", process.exit->exit_code, words);
}

const ProcessRecord* find(const ActRecord& act, const std::string& tenant, const std::string& role) {
  const auto found = std::ranges::find_if(act.processes, [&](const ProcessRecord& process) {
    return process.tenant == tenant && process.role == role;
  });
  return found == act.processes.end() ? nullptr : &*found;
}

Check finished(const ActRecord& act, const std::string& tenant, const std::string& role) {
  const ProcessRecord* process = find(act, tenant, role);
  const bool well = process != nullptr && process->exit && process->exit->clean();
  return {well, fmt::format("{}'s {} process finishes", tenant, role),
          process == nullptr ? "it never ran" : end_of(*process)};
}

Check died(const ActRecord& act, const std::string& tenant, const std::string& role) {
  const ProcessRecord* process = find(act, tenant, role);
  const bool dead = process != nullptr && process->exit && !process->exit->clean();
  return {dead, fmt::format("{}'s {} process dies", tenant, role),
          process == nullptr ? "it never ran" : end_of(*process)};
}

Check played(const ActRecord& act) {
  return {act.problem.empty(), fmt::format("act {} is played to its end", static_cast<int>(act.act)),
          act.problem};
}

Check output(const TenantOutcome& outcome, bool expected) {
  if (!expected) return {!outcome.output_hash, fmt::format("{} has no output", outcome.tenant), "it has one"};
  return {outcome.output_hash && outcome.same_as_reference,
          fmt::format("{}'s output is byte for byte the reference", outcome.tenant),
          outcome.output_hash ? "it differs" : "there is none"};
}

void judge_reference(const ActRecord& act, std::vector<Check>& checks) {
  for (const TenantOutcome& outcome : act.outcomes) {
    checks.push_back(finished(act, outcome.tenant, "active"));
    checks.push_back(
        {outcome.output_bytes > 0, fmt::format("{} has an output", outcome.tenant), "it is empty"});
  }
}

void judge_stock(const Play& play, const ActRecord& act, std::vector<Check>& checks) {
  checks.push_back(died(act, "rogue", "rogue"));
  for (const TenantOutcome& outcome : act.outcomes) {
    checks.push_back(play.spares_co_clients ? finished(act, outcome.tenant, "active")
                                            : died(act, outcome.tenant, "active"));
    checks.push_back(output(outcome, play.spares_co_clients));
  }
}

void judge_takeover(const Play& play, const ActRecord& act, const std::string& tenant,
                    std::vector<Check>& checks) {
  checks.push_back(finished(act, tenant, "standby"));
  const auto recovery = std::ranges::find(play.recoveries, tenant, &Recovery::tenant);
  const bool known = recovery != play.recoveries.end();
  checks.push_back({known, fmt::format("{} is taken over by its standby", tenant), "it was not promoted"});
  checks.push_back({known && recovery->steps_lost == 0, fmt::format("{} loses no committed step", tenant),
                    known ? fmt::format("{} lost", recovery->steps_lost) : "not known"});
}

void judge_firebreak(const Play& play, const ActRecord& act, std::vector<Check>& checks) {
  checks.push_back(died(act, "rogue", "rogue"));
  for (const TenantOutcome& outcome : act.outcomes) {
    if (play.spares_co_clients) {
      checks.push_back(finished(act, outcome.tenant, "active"));
    } else {
      judge_takeover(play, act, outcome.tenant, checks);
    }
    checks.push_back(output(outcome, true));
  }
}

}  // namespace

std::vector<Check> judge(const Play& play) {
  std::vector<Check> checks;
  const bool is_with_parked = !play.parked_faults.empty();
  checks.push_back({play.acts.size() == (is_with_parked ? 4u : 3u),
                    is_with_parked ? "four acts are played" : "three acts are played",
                    fmt::format("{} were", play.acts.size())});
  for (const ActRecord& act : play.acts) {
    checks.push_back(played(act));
    switch (act.act) {
      case Act::Reference:
        judge_reference(act, checks);
        break;
      case Act::StockMps:
        judge_stock(play, act, checks);
        break;
      case Act::Firebreak:
        judge_firebreak(play, act, checks);
        break;
      case Act::Parked:
        judge_parked(play, act, checks);
        break;
    }
  }
  return checks;
}

bool all_observed(const std::vector<Check>& checks) { return std::ranges::all_of(checks, &Check::observed); }

}  // namespace firebreak::demo
