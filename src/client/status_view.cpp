// SPDX-License-Identifier: Apache-2.0
#include "client/status_view.h"

#include <nlohmann/json.hpp>

namespace firebreak::client {
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

/// Of what is no object, or has no such member: an empty object.
const Json& object_at(const Json& entry, const char* name) {
  static const Json empty = Json::object();
  const auto found = entry.find(name);
  return found != entry.end() && found->is_object() ? *found : empty;
}

/// The objects of an array of the document.
std::vector<Json> objects_at(const std::string& status_json, const char* name) {
  const Json all = Json::parse(status_json, nullptr, false);
  const auto array = all.find(name);  // of what is no object: the end
  std::vector<Json> objects;
  if (array == all.end() || !array->is_array()) return objects;
  for (const Json& entry : *array) {
    if (entry.is_object()) objects.push_back(entry);
  }
  return objects;
}

TenantView view_of(const Json& entry) {
  const Json& active = object_at(entry, "active");
  return {text_at(entry, "phase"),
          text_at(entry, "standby_state"),
          static_cast<pid_t>(number_at(active, "pid")),
          static_cast<pid_t>(number_at(object_at(entry, "standby"), "pid")),
          text_at(active, "domain"),
          number_at(entry, "epoch"),
          number_at(entry, "committed_steps")};
}

}  // namespace

std::optional<TenantView> view_of(const std::string& status_json, const std::string& name) {
  for (const Json& entry : objects_at(status_json, "tenants")) {
    if (text_at(entry, "name") == name) return view_of(entry);
  }
  return std::nullopt;
}

std::size_t count_tenants(const std::string& status_json) {
  return objects_at(status_json, "tenants").size();
}

std::vector<pid_t> servers_of(const std::string& status_json, const std::string& domain) {
  std::vector<pid_t> servers;
  for (const Json& entry : objects_at(status_json, "domains")) {
    const auto pids = entry.find("server_pids");
    if (text_at(entry, "name") != domain || pids == entry.end() || !pids->is_array()) continue;
    for (const Json& pid : *pids) {
      if (pid.is_number_unsigned()) servers.push_back(pid.get<pid_t>());
    }
  }
  return servers;
}

}  // namespace firebreak::client
