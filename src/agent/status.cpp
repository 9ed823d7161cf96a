// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "agent/agent.h"

namespace firebreak::agent {
namespace {

nlohmann::json describe_member(const Member& member) {
  if (member.pid == 0) return nullptr;
  return {{"pid", member.pid}, {"domain", member.domain}, {"joined", member.connection != 0}};
}

}  // namespace

std::string Agent::status_json() const {
  nlohmann::json document = {{"socket", options_.socket_path}, {"domains", domains_.names()}};
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
                       {"memory_bytes", tenant->vault.total_bytes()}});
  }
  return document.dump(2);
}

}  // namespace firebreak::agent
