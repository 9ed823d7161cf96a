// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/top_frame.h"

#include <fmt/format.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "commands/cli/status_words.h"
#include "ground/base/text.h"

namespace firebreak::cli {
namespace {

using nlohmann::json;
using Rows = std::vector<std::vector<std::string>>;

const json& list_of(const json& in, const char* name) {
  static const json none = json::array();
  const auto found = in.is_object() ? in.find(name) : in.end();
  return in.is_object() && found != in.end() && found->is_array() ? *found : none;
}

json object_of(const json& in, const char* name) {
  const auto found = in.is_object() ? in.find(name) : in.end();
  return in.is_object() && found != in.end() && found->is_object() ? *found : json::object();
}

std::optional<std::uint64_t> steps_of(const json& tenant) {
  const auto found = tenant.find("committed_steps");
  if (found == tenant.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<std::uint64_t>();
}

std::optional<std::uint64_t> earlier_steps(const json& before, const std::string& name) {
  for (const json& tenant : list_of(before, "tenants")) {
    if (tenant.is_object() && word(tenant, "name") == name) return steps_of(tenant);
  }
  return std::nullopt;
}

/// "-": that is not known; a tenant that has begun anew counts from 0.
std::string speed_of(const json& tenant, const json& before, Nanoseconds passed) {
  const auto steps = steps_of(tenant), earlier = earlier_steps(before, word(tenant, "name"));
  const double passed_s = std::chrono::duration<double>(passed).count();
  if (!steps || !earlier || *steps < *earlier || passed_s <= 0) return "-";
  return fmt::format("{:.1f}", static_cast<double>(*steps - *earlier) / passed_s);
}

std::string memory_of(const json& tenant) {
  constexpr std::uint64_t bytes_per_mib = 1U << 20;
  const auto found = tenant.find("memory_bytes");
  if (found == tenant.end() || !found->is_number_unsigned()) return "-";
  return fmt::format("{} MiB", found->get<std::uint64_t>() / bytes_per_mib);
}

std::string share_of(const json& member) {
  const std::string percent = word(member, "sm_percent", "");
  return percent.empty() ? "all" : percent + " %";
}

/// Of those for whom the agent counts: "faults: 3 (2 failed_over, 1 lost)".
std::string faults_in(const json& status) {
  const json counts = object_of(status, "counts");
  if (counts.empty()) return "faults: counted for operators and observers";
  std::map<std::string, std::uint64_t> by_outcome;
  std::uint64_t total = 0;
  const json faults = object_of(counts, "faults");
  for (const json& outcomes : faults) {
    if (!outcomes.is_object()) continue;
    for (const auto& [outcome, count] : outcomes.items()) {
      if (!count.is_number_unsigned()) continue;
      by_outcome[outcome] += count.get<std::uint64_t>();
      total += count.get<std::uint64_t>();
    }
  }
  std::string parts;
  for (const auto& [outcome, count] : by_outcome) {
    if (count > 0) parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", count, outcome);
  }
  return parts.empty() ? fmt::format("faults: {}", total) : fmt::format("faults: {} ({})", total, parts);
}

Rows domain_rows(const json& status) {
  Rows rows = {{"DOMAIN", "STATE", "PARKING", "GPU", "CLIENTS", "RESTARTS", "LAST NEWS"}};
  for (const json& domain : list_of(status, "domains")) {
    if (!domain.is_object()) continue;
    const auto clients = list_of(domain, "clients").size() + list_of(domain, "foreign").size();
    rows.push_back({word(domain, "name"), word(domain, "state"), word(object_of(domain, "parking"), "state"),
                    word(domain, "gpu", "(default)"), fmt::format("{}", clients), restarts_of(domain),
                    word(domain, "news")});
  }
  return rows;
}

/// "waits 120 ms", "goes"; "-": it never asks for a turn.
std::string turn_of(const json& tenant) {
  const json turn = object_of(tenant, "turn");
  const std::string state = word(turn, "state");
  if (state == "waits") return fmt::format("waits {} ms", word(turn, "waits_ms"));
  return state == "never asks" ? "-" : state;
}

Rows tenant_rows(const json& status, const json& before, Nanoseconds passed) {
  Rows rows = {
      {"TENANT", "PHASE", "STANDBY", "DOMAIN", "SMS", "VAULT", "STRAYS", "TURN", "STEPS", "STEPS/S"}};
  for (const json& tenant : list_of(status, "tenants")) {
    if (!tenant.is_object()) continue;
    const json active = object_of(tenant, "active");
    rows.push_back({word(tenant, "name"), word(tenant, "phase"), word(tenant, "standby_state"),
                    word(active, "domain"), active.empty() ? "-" : share_of(active), memory_of(tenant),
                    word(object_of(tenant, "guard"), "strays", "0"), turn_of(tenant),
                    word(tenant, "committed_steps"), speed_of(tenant, before, passed)});
  }
  return rows;
}

/// Bytes that a terminal would obey are none of its text.
Rows as_text(Rows rows) {
  for (auto& row : rows) {
    for (std::string& each : row) each = printable(each);
  }
  return rows;
}

void add_lines(std::vector<std::string>& lines, const std::string& text) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
}

}  // namespace

std::vector<std::string> top_frame(const StatusMoment& now, const std::optional<StatusMoment>& before,
                                   os::TerminalSize size) {
  const json status = json::parse(now.status, nullptr, false);
  const json earlier = before ? json::parse(before->status, nullptr, false) : json();
  const Nanoseconds passed = before ? now.at - before->at : Nanoseconds(0);
  std::vector<std::string> lines;
  lines.push_back(printable(fmt::format(
      "firebreak {}   {}", status.is_object() ? word(status, "version") : "-", faults_in(status))));
  lines.emplace_back();
  add_lines(lines, table(as_text(domain_rows(status))));
  lines.emplace_back();
  add_lines(lines, table(as_text(tenant_rows(status, earlier, passed))));
  if (lines.size() > size.rows && size.rows > 0) {
    const std::size_t shown = size.rows - 1;
    const std::string rest = fmt::format("... and {} lines more", lines.size() - shown);
    lines.resize(shown);
    lines.push_back(rest);
  }
  for (std::string& line : lines) line = printable(line, size.columns);
  return lines;
}

}  // namespace firebreak::cli
