// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/fault_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "agent/faults/fault/xid.h"
#include "commands/cli/status_words.h"
#include "ground/base/text.h"

namespace firebreak::cli {
namespace {

using nlohmann::json;

/// Words of tenants are in it: bytes that a terminal would obey are none of its text.
std::string shown(const json& object, const char* name, const std::string& otherwise = "-") {
  return printable(object.is_object() ? word(object, name, otherwise) : otherwise);
}

std::string time_of(const json& fault, const MomentInUtc& moment) {
  const std::string at = shown(fault, "at", "");
  if (!at.empty()) return at;
  const auto at_ns = fault.find("at_ns");
  return at_ns != fault.end() && at_ns->is_number_integer() ? moment(at_ns->get<std::int64_t>()) : "-";
}

std::string in_columns(const std::string& id, const std::string& when, const std::string& fault_class,
                       const std::string& outcome, const std::string& domain, const std::string& culprit,
                       const std::string& what) {
  return fmt::format("{:<7}  {:<20}  {:<18}  {:<11}  {:<6}  {:<16}  {}\n", id, when, fault_class, outcome,
                     domain, culprit, what);
}

/// What came of it for tenants that had not caused it.
std::string outcome_in_words(const std::string& outcome) {
  if (outcome == "contained") return "nothing came of it for others";
  if (outcome == "parked") return "others left its domain, or finished there";
  if (outcome == "failed_over") return "a standby goes on";
  if (outcome == "lost") return "somebody else ended, and nobody goes on";
  return outcome;
}

std::vector<json> list_in(const json& fault, const char* name) {
  const auto found = fault.find(name);
  return found != fault.end() && found->is_array() ? found->get<std::vector<json>>() : std::vector<json>{};
}

std::string next_steps(const json& fault) {
  std::string text;
  for (const json& each : list_in(fault, "xids")) {
    if (!each.is_number_integer()) continue;
    const fault::XidEntry entry = fault::find_xid(each.get<int>());
    text += fmt::format("  Xid {:<7}  {}; NVIDIA's next step: {}\n", entry.code, entry.meaning,
                        fault::to_string(entry.action));
  }
  return text;
}

}  // namespace

std::string fault_head() { return in_columns("ID", "WHEN", "CLASS", "OUTCOME", "DOMAIN", "CULPRIT", "WHAT"); }

std::string fault_line(const json& fault, const MomentInUtc& moment) {
  return in_columns(shown(fault, "id"), time_of(fault, moment), shown(fault, "class"),
                    shown(fault, "outcome"), shown(fault, "domain"), shown(fault, "culprit"),
                    shown(fault, "what"));
}

std::string fault_line_of(const json& fault, const std::string& tenant, const MomentInUtc& moment) {
  const std::string begin = fmt::format("{}  {:<7}  ", time_of(fault, moment), shown(fault, "id"));
  if (fault.is_object() && fault.value("culprit", json()) == tenant)
    return fmt::format("{}it faulted: {}\n", begin, shown(fault, "what"));
  for (const json& each : list_in(fault, "touched")) {
    if (!each.is_object() || each.value("tenant", json()) != tenant) continue;
    return fmt::format("{}a neighbour ({}) faulted: {}; {}\n", begin,
                       shown(fault, "culprit", "nobody is named"), shown(fault, "what"),
                       shown(each, "became"));
  }
  return {};
}

const json* find_fault(const json& faults, const std::string& id) {
  if (!faults.is_array() || id.empty()) return nullptr;
  for (const json& each : faults) {
    if (each.is_object() && each.value("id", json()) == id) return &each;
  }
  return nullptr;
}

std::string fault_account(const json& fault, const MomentInUtc& moment) {
  std::string text = fmt::format("fault {}\n", shown(fault, "id"));
  text += fmt::format("  when         {}\n", time_of(fault, moment));
  text += fmt::format("  what         {} ({})\n", shown(fault, "what"), shown(fault, "class"));
  text += fmt::format("  culprit      {}\n", shown(fault, "culprit", "nobody is named"));
  text += fmt::format("  domain       {}\n", shown(fault, "domain", "none that is known"));
  text += fmt::format("  came of it   {}: {}\n", shown(fault, "outcome"),
                      outcome_in_words(shown(fault, "outcome")));
  text += next_steps(fault);
  const auto touched = list_in(fault, "touched");
  text += touched.empty() ? "  no other tenant was there\n" : "  who else was there\n";
  for (const json& each : touched)
    text += fmt::format("    {}: {}\n", shown(each, "tenant"), shown(each, "became"));
  const auto saw = list_in(fault, "saw");
  if (!saw.empty()) text += "  what was seen\n";
  for (const json& each : saw) {
    if (each.is_string()) text += fmt::format("    {}\n", printable(each.get<std::string>()));
  }
  return text;
}

bool is_known_in(const json& status, pid_t pid) {
  if (!status.is_object()) return false;
  for (const json& domain : list_in(status, "domains")) {
    if (!domain.is_object()) continue;
    for (const json& client : list_in(domain, "clients"))
      if (client == pid) return true;
    for (const json& client : list_in(domain, "foreign"))
      if (client.is_object() && client.value("pid", json()) == pid) return true;
  }
  return false;
}

std::vector<json> FaultNews::in(const json& faults) {
  std::vector<json> news;
  std::set<std::string> there;
  if (!faults.is_array()) return news;
  for (const json& each : faults) {
    if (!each.is_object()) continue;
    // One of an agent that gave no ids is known by its moment.
    const std::string key = shown(each, "id", "") + " " + word(each, "at_ns");
    if (!told_.contains(key)) news.push_back(each);
    there.insert(key);
  }
  told_ = std::move(there);
  return news;
}

}  // namespace firebreak::cli
