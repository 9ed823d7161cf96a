// SPDX-License-Identifier: Apache-2.0
#include "cli/pair_plan.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace firebreak::cli {
namespace {

using Json = nlohmann::json;

std::string text_at(const Json& entry, const char* name) {
  const auto found = entry.find(name);
  return found != entry.end() && found->is_string() ? found->get<std::string>() : std::string();
}

pid_t pid_at(const Json& entry, const char* name) {
  const auto member = entry.find(name);
  if (member == entry.end() || !member->is_object()) return 0;
  const auto pid = member->find("pid");
  return pid != member->end() && pid->is_number_integer() ? pid->get<pid_t>() : 0;
}

}  // namespace

std::optional<TenantView> view_of(const std::string& status_json, const std::string& name) {
  const Json all = Json::parse(status_json, nullptr, false);
  const auto tenants = all.find("tenants");  // of what is no object: the end
  if (tenants == all.end() || !tenants->is_array()) return std::nullopt;
  for (const Json& entry : *tenants) {
    if (entry.is_object() && text_at(entry, "name") == name) {
      return TenantView{text_at(entry, "phase"), text_at(entry, "standby_state"), pid_at(entry, "active"),
                        pid_at(entry, "standby")};
    }
  }
  return std::nullopt;
}

Move next_move(const std::optional<TenantView>& tenant, const std::vector<pid_t>& running) {
  // An agent that was started anew by hand knows nobody; those who run go on without it.
  if (!tenant) return running.empty() ? Move::End : Move::Wait;
  if (tenant->phase == "finished") return Move::End;
  if (tenant->phase == "lost") return Move::GiveUp;
  const bool active_runs = std::ranges::count(running, tenant->active) > 0;
  if (tenant->phase == "empty") return tenant->active == 0 ? Move::End : Move::Wait;
  // With the fenced one still there, it may yet become the standby.
  const bool is_alone = active_runs && running.size() == 1;
  const bool lacks_standby = tenant->standby == 0 && tenant->standby_state == "none";
  return tenant->phase == "serving" && is_alone && lacks_standby ? Move::StartStandby : Move::Wait;
}

}  // namespace firebreak::cli
