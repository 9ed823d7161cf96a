// SPDX-License-Identifier: Apache-2.0
#include "characterize/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ranges>

namespace firebreak::characterize {
namespace {

constexpr std::size_t fewest_values = 3;
constexpr double least_part = 0.1;

/// "CUDA_ERROR_LAUNCH_FAILED, lives": what occurred at all, not how often.
template <class Map>
std::string names_in(const Map& counted) {
  std::string names;
  for (const auto& entry : counted) names += (names.empty() ? "" : ", ") + entry.first;
  return names.empty() ? "none" : names;
}

const Counts& fates_of(const KindSummary& kind, const std::string& role) {
  static const Counts none;
  const auto found = kind.fates.find(role);
  return found == kind.fates.end() ? none : found->second;
}

/// Figures of one kind, by their names.
std::map<std::string, Spread> figures_of(const KindSummary& kind) {
  std::map<std::string, Spread> figures = kind.signal_ms;
  for (const auto& [role, spread] : kind.stall_ms) figures["stall of " + role] = spread;
  if (kind.served_ms) figures["served"] = *kind.served_ms;
  return figures;
}

void compare_kind(const KindSummary& before, const KindSummary& after, Comparison& comparison) {
  const std::string& name = after.expected.kind;
  const auto note = [&](const std::string& what, const std::string& then, const std::string& now) {
    if (then != now) comparison.changes.push_back({name, what, then, now});
  };
  for (const Role role : roles) {
    const std::string key = key_of(role);
    note(key, names_in(fates_of(before, key)), names_in(fates_of(after, key)));
  }
  note("xids", names_in(before.xids), names_in(after.xids));
  note("first_seen_by", names_in(before.first_seen_by), names_in(after.first_seen_by));
  note("sources", names_in(before.signal_ms), names_in(after.signal_ms));
  note("culprit", names_in(before.attribution), names_in(after.attribution));
  const auto then = figures_of(before);
  for (const auto& [figure, now] : figures_of(after)) {
    const auto found = then.find(figure);
    if (found == then.end()) continue;
    const bool changed = medians_differ(found->second, now);
    comparison.medians.push_back({name, figure, found->second.p50, now.p50, changed});
    if (changed)
      note(figure + " p50 ms", fmt::format("{:.2f}", found->second.p50), fmt::format("{:.2f}", now.p50));
  }
}

std::string machine_words(const platform::Machine& machine) {
  return fmt::format("{}{}{}, {}, {}", machine.gpu, machine.driver.empty() ? "" : ", driver ", machine.driver,
                     machine.date, machine.commit);
}

}  // namespace

bool medians_differ(const Spread& before, const Spread& after) {
  if (before.count < fewest_values || after.count < fewest_values) return false;
  const bool apart = before.p75 < after.p25 || after.p75 < before.p25;
  return apart && std::abs(before.p50 - after.p50) > least_part * std::max(before.p50, after.p50);
}

Comparison compare(const Results& before, const Results& after) {
  Comparison comparison{before.machine, after.machine, {}, {}, {}, {}};
  const Summary then = summarize(before);
  const Summary now = summarize(after);
  const auto find = [](const Summary& in, const std::string& kind) -> const KindSummary* {
    const auto found =
        std::ranges::find_if(in.kinds, [&](const KindSummary& one) { return one.expected.kind == kind; });
    return found == in.kinds.end() || found->runs == 0 ? nullptr : &*found;
  };
  for (const KindSummary& kind : now.kinds) {
    if (kind.runs == 0) continue;
    const KindSummary* earlier = find(then, kind.expected.kind);
    if (earlier == nullptr) {
      comparison.only_after.push_back(kind.expected.kind);
    } else {
      compare_kind(*earlier, kind, comparison);
    }
  }
  for (const KindSummary& kind : then.kinds) {
    if (kind.runs > 0 && find(now, kind.expected.kind) == nullptr)
      comparison.only_before.push_back(kind.expected.kind);
  }
  return comparison;
}

std::string render(const Comparison& comparison) {
  std::string text = fmt::format("before: {}\nafter:  {}\n", machine_words(comparison.before),
                                 machine_words(comparison.after));
  for (const std::string& kind : comparison.only_before) text += fmt::format("  {}: before only\n", kind);
  for (const std::string& kind : comparison.only_after) text += fmt::format("  {}: after only\n", kind);
  for (const Change& change : comparison.changes)
    text += fmt::format("  {}: {}: {} -> {}\n", change.kind, change.what, change.before, change.after);
  if (comparison.changes.empty()) text += "  nothing changed in the kinds that both have\n";
  return text;
}

}  // namespace firebreak::characterize
