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
  return {word(domain, "name"),       word(domain, "state"),        word(domain, "gpu", "(default)"),
          word(domain, "daemon_pid"), words(domain, "server_pids"), words(domain, "clients"),
          restarts_of(domain),        word(domain, "news")};
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

/// Of one that lives there is what may be needed, or it has given that back itself.
bool is_of_dead(const json& hold) {
  const std::string state = hold.value("state", "");
  return state != "ready" && state != "given back" && state != "ended";
}

/// Whether a dead process's last kernels have ended, as far as is known.
std::string work_of(const json& hold) {
  const std::string state = word(hold, "state");
  if (state == "waiting") return "are given time to end";
  if (state == "running") return "are known to run";
  if (state == "endless") return "run on and on";
  if (state == "held elsewhere") return "are kept by another process";
  return state;
}

/// Of a process that is gone.
std::vector<std::string> hold_row(const json& hold) {
  return {word(hold, "pid"), word(hold, "tenant"), work_of(hold), word(hold, "since_death_ms") + " ms"};
}

/// Of memory that one tenant has made for others.
std::vector<std::string> shared_row(const json& shared) {
  std::vector<std::string> tenants;
  for (const json& each : shared.value("tenants", json::array())) tenants.push_back(each.get<std::string>());
  const auto bytes = shared.value("bytes", std::uint64_t{0});
  return {word(shared, "owner"), fmt::format("{} MiB", bytes >> 20U), word(shared, "allocations"),
          shared.value("is_shared", false) ? "yes" : "not yet",
          tenants.empty() ? "nobody" : fmt::format("{}", fmt::join(tenants, ","))};
}

/// Of a client that nobody has placed in the domain.
std::vector<std::string> foreign_row(const json& client, const json& domain) {
  return {word(client, "pid"), word(client, "name"), word(client, "uid"), word(domain, "name"),
          word(client, "came")};
}

/// How far it has given up its GPU, as RestLevel says it.
std::string rest_of(const json& tenant) {
  const json spare = tenant.value("spare", json());
  return spare.is_object() ? word(spare, "rest", "awake") : "awake";
}

/// What the tenant's process does, or what has become of the tenant.
std::string state_of(const json& tenant) {
  const std::string phase = word(tenant, "phase");
  const bool has_active = tenant.value("active", json()).is_object();
  const char* const runs = rest_of(tenant) == "awake" ? "running" : "rests";
  if (phase == "empty") return has_active ? runs : "waits for its active";
  if (phase == "serving") return runs;
  if (phase == "suspecting") return "may have had a fault";
  if (phase == "orphaned") return "its active has ended";
  if (phase == "promoting") return "its standby takes over";
  return phase;
}

/// "in b, 585 MiB", or why there is none that works; "-": it was not asked for.
std::string spare_of(const json& tenant) {
  const json spare = tenant.value("spare", json());
  if (!spare.is_object()) return "-";
  const std::string domain = word(spare, "domain", "");
  const std::string reason = word(spare, "reason", "");
  const std::string rest = rest_of(tenant);
  const auto kept_mib = spare.value("rest_host_bytes", std::uint64_t{0}) >> 20U;
  if (rest != "awake")
    return "rests, " + rest + (kept_mib == 0 ? "" : fmt::format(": {} MiB in the host's memory", kept_mib));
  const auto cost_mib = spare.value("gpu_memory_mib", std::uint64_t{0});
  const std::string cost = cost_mib == 0 ? "" : fmt::format(", {} MiB", cost_mib);
  const std::string state = word(spare, "state");
  if (state == "protected" && !domain.empty()) return fmt::format("in {}{}", domain, cost);
  const std::string where = domain.empty() ? "" : fmt::format(", in {}{}", domain, cost);
  return fmt::format("{}{}{}{}", state, where, reason.empty() ? "" : ": ", reason);
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

struct Protection {
  const char* is_protected;
  const char* not_against;
};

/// Whether the tenant outlives a fault of a neighbour as things are now, and which one it does not.
Protection protection_of(const json& tenant, const json& domains) {
  const json active = tenant.value("active", json());
  if (!active.is_object()) return {"-", "-"};
  // It has nothing in a domain then that a neighbour's fault could reach.
  const std::string rest = rest_of(tenant);
  if (rest == "without contexts" || rest == "without memory") return {"yes", "-"};
  if (word(tenant, "standby_state") == "ready") return {"yes", "a broken GPU"};
  const json spare = tenant.value("spare", json::object());
  const bool is_protected = word(spare, "state") == "protected";
  const bool parked = is_parked(domains, active);
  if (is_protected && parked) return {"yes", "memory faults while its kernels run"};
  if (is_protected || (spare.is_object() && !word(spare, "domain", "").empty()))
    return {"yes", "faults while its kernels run"};
  if (parked) return {"no", "any fault: it goes on after an exception, until its domain ends"};
  return {"no", "any fault"};
}

/// "live, waits 120 ms", "batch, goes"; "never asks": it never waits either.
std::string turn_of(const json& tenant) {
  const json turn = tenant.value("turn", json());
  if (!turn.is_object()) return "-";
  const std::string state = word(turn, "state");
  if (state == "never asks") return state;
  const std::string wait = state == "waits" ? fmt::format(" {} ms", word(turn, "waits_ms")) : "";
  return fmt::format("{}, {}{}", word(turn, "class"), state, wait);
}

std::vector<std::string> tenant_row(const json& tenant, const json& domains) {
  const json active = tenant.value("active", json());
  const json standby = tenant.value("standby", json());
  const Protection protection = protection_of(tenant, domains);
  return {word(tenant, "name"),
          state_of(tenant),
          process_of(active),
          process_of(standby),
          limits_of(active.is_object() ? active : standby),
          word(tenant.value("guard", json::object()), "state"),
          spare_of(tenant),
          protection.is_protected,
          protection.not_against,
          turn_of(tenant)};
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
  rows = {{"TENANT", "STATE", "ACTIVE", "STANDBY", "LIMITS", "GUARD", "SPARE", "PROTECTED", "NOT AGAINST",
           "TURN"}};
  const json domains = status.value("domains", json::array());
  for (const json& tenant : status.value("tenants", json::array()))
    rows.push_back(tenant_row(tenant, domains));
  text += rows.size() > 1 ? "\n" + table(rows) : "\nno tenants\n";
  rows = {{"MADE BY", "MEMORY", "ALLOCATIONS", "SHARED", "TENANTS"}};
  for (const json& shared : status.value("shared", json::array())) rows.push_back(shared_row(shared));
  if (rows.size() > 1) text += "\n" + table(rows);
  rows = {{"DEAD", "TENANT", "ITS LAST KERNELS", "SINCE"}};
  for (const json& hold : status.value("holds", json::array())) {
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
