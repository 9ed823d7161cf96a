// SPDX-License-Identifier: Apache-2.0
#include "shared/link/status_view.h"

#include <nlohmann/json.hpp>

namespace firebreak::link {
namespace {

using Json = nlohmann::json;

std::string text_at(const Json& entry, const char* name) {
  const auto found = entry.find(name);
  return found != entry.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::uint64_t number_at(const Json& entry, const char* name) {
  const auto found = entry.find(name);
  return found != entry.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

/// Returns an empty object for what is no object, or has no such member.
const Json& object_at(const Json& entry, const char* name) {
  static const Json empty = Json::object();
  const auto found = entry.find(name);
  return found != entry.end() && found->is_object() ? *found : empty;
}

std::vector<Json> objects_at(const Json& all, const char* name) {
  const auto array = all.find(name);  // the end, for what is no object
  std::vector<Json> objects;
  if (array == all.end() || !array->is_array()) return objects;
  for (const Json& entry : *array) {
    if (entry.is_object()) objects.push_back(entry);
  }
  return objects;
}

template <class T>
std::optional<T> known(const Result<T>& parsed) {
  return parsed ? std::optional(*parsed) : std::nullopt;
}

TenantView view_of(const Json& entry) {
  const Json& active = object_at(entry, "active");
  return {known(pair::phase_from(text_at(entry, "phase"))),
          known(pair::standby_from(text_at(entry, "standby_state"))),
          static_cast<pid_t>(number_at(active, "pid")),
          static_cast<pid_t>(number_at(object_at(entry, "standby"), "pid")),
          text_at(active, "domain"),
          number_at(entry, "epoch"),
          number_at(entry, "committed_steps"),
          text_at(object_at(entry, "spare"), "state")};
}

std::vector<pid_t> pids_at(const Json& entry, const char* name) {
  std::vector<pid_t> pids;
  const auto found = entry.find(name);
  if (found == entry.end() || !found->is_array()) return pids;
  for (const Json& pid : *found) {
    if (pid.is_number_unsigned()) pids.push_back(pid.get<pid_t>());
  }
  return pids;
}

FaultView fault_of(const Json& entry) {
  return {static_cast<std::int64_t>(number_at(entry, "at_ns")),
          text_at(entry, "class"),
          text_at(entry, "outcome"),
          text_at(entry, "domain"),
          text_at(entry, "culprit"),
          text_at(entry, "what"),
          text_at(entry, "control_group"),
          text_at(entry, "id"),
          text_at(entry, "at")};
}

}  // namespace

std::optional<TenantView> StatusView::tenant(const std::string& name) const {
  const auto found = tenants.find(name);
  return found == tenants.end() ? std::nullopt : std::optional(found->second);
}

StatusView parse_status(const std::string& status_json) {
  const Json all = Json::parse(status_json, nullptr, false);
  StatusView view;
  view.tenants_socket = text_at(all, "tenants_socket");
  for (const Json& entry : objects_at(all, "tenants")) view.tenants[text_at(entry, "name")] = view_of(entry);
  for (const Json& entry : objects_at(object_at(all, "counts"), "past_faults"))
    view.faults.push_back(fault_of(entry));
  for (const Json& entry : objects_at(all, "domains")) {
    view.domains.push_back({text_at(entry, "name"), text_at(entry, "gpu"), text_at(entry, "state"),
                            text_at(entry, "gpu_needs")});
    view.servers[text_at(entry, "name")] = pids_at(entry, "server_pids");
    const Json& parking = object_at(entry, "parking");
    if (!parking.empty())
      view.parking[text_at(entry, "name")] = {text_at(parking, "state"), pids_at(parking, "culprits")};
  }
  return view;
}

std::string state_of(const StatusView& status, const DomainView& domain) {
  const auto parking = status.parking.find(domain.name);
  const bool is_parked =
      parking != status.parking.end() && parking->second.state != "ready" && parking->second.state != "off";
  return is_parked ? "parked" : domain.state;
}

bool takes_clients(const StatusView& status, const DomainView& domain) {
  return state_of(status, domain) == "serving";
}

}  // namespace firebreak::link
