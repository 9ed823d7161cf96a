// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/status_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "commands/cli/status_words.h"

namespace firebreak::cli {
namespace {

using nlohmann::json;

std::string words(const json& object, const char* name) {
  std::vector<std::string> all;
  for (const json& each : object.value(name, json::array())) all.push_back(each.dump());
  return all.empty() ? "-" : fmt::format("{}", fmt::join(all, ","));
}

std::vector<std::string> domain_row(const json& domain) {
  const std::string restarts =
      fmt::format("{} + {}", word(domain, "daemon_restarts", "0"), word(domain, "server_restarts", "0"));
  return {word(domain, "name"),
          word(domain, "state"),
          word(domain, "gpu", "(default)"),
          word(domain, "daemon_pid"),
          words(domain, "server_pids"),
          words(domain, "clients"),
          restarts,
          word(domain, "news")};
}

std::string process_of(const json& member) {
  return member.is_object() ? fmt::format("{} in {}", word(member, "pid"), word(member, "domain")) : "-";
}

std::string limits_of(const json& member) {
  if (!member.is_object()) return "-";
  const std::string share = word(member, "sm_percent", "");
  const std::string memory = word(member, "memory_mib", "");
  std::string text = share.empty() ? "" : share + " % of the SMs";
  if (!memory.empty()) text += fmt::format("{}{} MiB", text.empty() ? "" : ", ", memory);
  return text.empty() ? "none" : text;
}

/// Whether the agent has what lets a process's last kernels end when it dies.
bool is_held(const json& holds, const json& member) {
  return member.is_object() && std::ranges::any_of(holds, [&](const json& hold) {
           return hold.value("state", "") == "ready" && word(hold, "pid") == word(member, "pid");
         });
}

/// Of one that lives there is what may be needed, or it has given that back itself.
bool is_of_dead(const json& hold) {
  const std::string state = hold.value("state", "");
  return state != "ready" && state != "given back";
}

/// Of a process that is gone.
std::vector<std::string> hold_row(const json& hold) {
  return {word(hold, "pid"), word(hold, "tenant"), word(hold, "state"), word(hold, "since_death_ms") + " ms"};
}

/// Of a client that nobody has placed in the domain.
std::vector<std::string> foreign_row(const json& client, const json& domain) {
  return {word(client, "pid"), word(client, "name"), word(client, "uid"), word(domain, "name"),
          word(client, "came")};
}

/// "protected, in b, 585 MiB", or why it is not; "-": it has none.
std::string spare_of(const json& tenant) {
  const json spare = tenant.value("spare", json());
  if (!spare.is_object()) return "-";
  const std::string state = word(spare, "state");
  const std::string domain = word(spare, "domain", "");
  const std::string reason = word(spare, "reason", "");
  const auto cost_mib = spare.value("gpu_memory_mib", std::uint64_t{0});
  const std::string cost = cost_mib == 0 ? "" : fmt::format(", {} MiB", cost_mib);
  if (!domain.empty() && reason.empty()) return fmt::format("{}, in {}{}", state, domain, cost);
  return reason.empty() ? state : fmt::format("{}: {}", state, reason);
}

/// Whether exceptions there are waited out in core dumps (docs/how/parking.md).
bool is_parked(const json& domains, const json& member) {
  return member.is_object() && std::ranges::any_of(domains, [&](const json& domain) {
           const json parking = domain.value("parking", json());
           return word(domain, "name") == word(member, "domain") && parking.is_object() &&
                  (word(parking, "state") == "ready" || word(parking, "state") == "halted" ||
                   word(parking, "state") == "held") &&
                  !parking.value("prevented", false);
         });
}

/// Which faults of its neighbours the tenant outlives, as things are now.
std::string survives(const json& tenant, const json& domains) {
  if (word(tenant, "standby_state") == "ready") return "any fault";
  const json active = tenant.value("active", json());
  const json spare = tenant.value("spare", json::object());
  const bool parked = is_parked(domains, active);
  if (word(spare, "state") == "protected" && parked) return "exceptions";
  if (spare.is_object() && !word(spare, "domain", "").empty()) return "faults while idle";
  return parked ? "exceptions, for a while" : "nothing";
}

std::vector<std::string> tenant_row(const json& tenant, const json& holds, const json& domains) {
  const json active = tenant.value("active", json());
  const json standby = tenant.value("standby", json());
  return {word(tenant, "name"),
          word(tenant, "phase"),
          process_of(active),
          process_of(standby),
          limits_of(active.is_object() ? active : standby),
          word(tenant.value("guard", json::object()), "state"),
          is_held(holds, active) ? "yes" : "no",
          survives(tenant, domains),
          spare_of(tenant)};
}

}  // namespace

std::string status_text(const std::string& document) {
  const json status = json::parse(document, nullptr, false);
  if (!status.is_object()) return document;
  std::vector<std::vector<std::string>> rows = {
      {"DOMAIN", "STATE", "GPU", "DAEMON", "SERVERS", "CLIENTS", "RESTARTS", "LAST NEWS"}};
  for (const char* const kind : {"domains", "anchors"}) {
    for (const json& domain : status.value(kind, json::array())) rows.push_back(domain_row(domain));
  }
  std::string text = table(rows);
  rows = {{"TENANT", "PHASE", "ACTIVE", "STANDBY", "LIMITS", "GUARD", "HELD", "SURVIVES", "SPARE"}};
  const json holds = status.value("holds", json::array());
  const json domains = status.value("domains", json::array());
  for (const json& tenant : status.value("tenants", json::array()))
    rows.push_back(tenant_row(tenant, holds, domains));
  text += rows.size() > 1 ? "\n" + table(rows) : "\nno tenants\n";
  rows = {{"DEAD", "TENANT", "HOLD", "SINCE"}};
  for (const json& hold : holds) {
    if (is_of_dead(hold)) rows.push_back(hold_row(hold));
  }
  if (rows.size() > 1) text += "\n" + table(rows);
  rows = {{"FOREIGN", "NAME", "USER", "DOMAIN", "HOW IT CAME"}};
  for (const json& domain : status.value("domains", json::array())) {
    for (const json& client : domain.value("foreign", json::array())) {
      rows.push_back(foreign_row(client, domain));
    }
  }
  if (rows.size() > 1) text += "\n" + table(rows);
  const json not_heard = status.value("not_heard", json::array());
  if (!not_heard.empty()) text += "\n";
  for (const json& line : not_heard)
    text += (line.is_string() ? line.get<std::string>() : line.dump()) + "\n";
  text.pop_back();
  return text;
}

}  // namespace firebreak::cli
