// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "agent/agent.h"

namespace firebreak::agent {
namespace {

nlohmann::json describe_member(const Member& member) {
  if (member.pid == 0) return nullptr;
  return {{"pid", member.pid}, {"domain", member.domain}, {"joined", member.connection != 0}};
}

/// Of the active; of the standby where there is no active.
nlohmann::json describe_guard(const Tenant& tenant, const Detectors& detectors, abi::StrayPolicy by_default) {
  const pid_t pid = tenant.active.pid != 0 ? tenant.active.pid : tenant.standby.pid;
  const strays::Summary summary = detectors.straying_of(pid);
  const auto policy = tenant.strays == abi::StrayPolicy::Default ? by_default : tenant.strays;
  const strays::GuardReport guard = summary.guard.value_or(strays::GuardReport{});
  return {{"state", summary.guard ? strays::to_string(guard.state) : "none"},
          {"note", guard.note},
          {"blanket_bytes", guard.blanket_bytes},
          {"on_stray", abi::to_string(policy)},
          {"strays", summary.count},
          {"stray_blocks", summary.blocks},
          {"last_stray", tenant.last_stray}};
}

}  // namespace

std::string Agent::status_json() const {
  nlohmann::json document = {
      {"socket", options_.socket_path}, {"guard_test", options_.guard_test}, {"domains", domains_.names()}};
  nlohmann::json& tenants = document["tenants"] = nlohmann::json::array();
  for (const auto& [name, tenant] : tenants_) {
    tenants.push_back({{"name", name},
                       {"phase", pair::to_string(tenant->pair.phase)},
                       {"standby_state", pair::to_string(tenant->pair.standby)},
                       {"epoch", tenant->pair.epoch},
                       {"committed_steps", tenant->committed(tenant->pair.epoch)},
                       {"active", describe_member(tenant->active)},
                       {"standby", describe_member(tenant->standby)},
                       {"allocations", tenant->vault.entries().size()},
                       {"memory_bytes", tenant->vault.total_bytes()},
                       {"guard", describe_guard(*tenant, detectors_, options_.strays)}});
  }
  nlohmann::json& holds = document["holds"] = nlohmann::json::array();
  for (const hold::Held& held : holder_.held()) {
    const auto since_ms = std::chrono::duration_cast<Milliseconds>(held.since_death).count();
    holds.push_back({{"pid", held.pid},
                     {"tenant", tenant_of_process(held.pid)},
                     {"state", !held.dead     ? "ready"
                               : held.endless ? "endless"
                                              : "waiting"},
                     {"since_death_ms", held.dead ? nlohmann::json(since_ms) : nullptr}});
  }
  // A guard's note is the tenant's, and may hold any bytes.
  return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace firebreak::agent
