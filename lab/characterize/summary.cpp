// SPDX-License-Identifier: Apache-2.0
#include "characterize/summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace firebreak::characterize {
namespace {

/// Figures as they are collected, run by run.
struct Collected {
  std::map<std::string, std::vector<double>> signal_ms;
  std::map<std::string, std::vector<double>> stall_ms;
  std::vector<double> served_ms;
  std::vector<double> new_client_start_ms;
  std::vector<double> memory_left_bytes;
};

std::optional<Spread> spread_if_any(std::vector<double> values) {
  return values.empty() ? std::nullopt : std::optional(spread_of(std::move(values)));
}

void collect_times(const Run& run, Collected& figures) {
  for (const auto& [source, at_ms] : first_by_source(run)) figures.signal_ms[source].push_back(at_ms);
  for (const auto& [role, participant] : run.participants) {
    if (participant.longest_stall && !participant.died())
      figures.stall_ms[role].push_back(participant.longest_stall->length_ms());
  }
  if (run.restart.served_ms && run.restart.asked_ms) {
    figures.served_ms.push_back(*run.restart.served_ms);
    figures.new_client_start_ms.push_back(*run.restart.served_ms - *run.restart.asked_ms);
  }
  if (run.memory_left_bytes) figures.memory_left_bytes.push_back(static_cast<double>(*run.memory_left_bytes));
}

void count_run(const Run& run, KindSummary& kind) {
  ++kind.runs;
  for (const auto& [role, participant] : run.participants) ++kind.fates[role][fate_of(participant)];
  const auto xids = xids_of(run);
  ++kind.xids[xids.empty() ? "none" : fmt::format("{}", fmt::join(xids, ", "))];
  const std::string first = first_source(run);
  ++kind.first_seen_by[first.empty() ? "nobody" : first];
  if (!run.restart.served_ms) ++kind.not_served;
  ++kind.attribution[key_of(run.attribution.verdict)];
  for (const std::string& line : run.mismatches) ++kind.mismatches[line];
}

KindSummary summarize_kind(const Expected& expected, const std::vector<Run>& runs) {
  KindSummary kind;
  kind.expected = expected;
  Collected figures;
  for (const Run& run : runs) {
    if (run.kind != expected.kind) continue;
    if (!run.refused.empty()) kind.refused = run.refused;
    if (!run.problem.empty()) {
      ++kind.problems;
      kind.last_problem = run.problem;
    }
    if (!run.counts()) continue;
    count_run(run, kind);
    collect_times(run, figures);
  }
  for (auto& [source, values] : figures.signal_ms) kind.signal_ms[source] = spread_of(std::move(values));
  for (auto& [role, values] : figures.stall_ms) kind.stall_ms[role] = spread_of(std::move(values));
  kind.served_ms = spread_if_any(std::move(figures.served_ms));
  kind.new_client_start_ms = spread_if_any(std::move(figures.new_client_start_ms));
  kind.memory_left_bytes = spread_if_any(std::move(figures.memory_left_bytes));
  return kind;
}

/// How long the fault's own part of a run took: until the last of its signals and errors.
double fault_length_ms(const Run& run) {
  double last_ms = 0;
  for (const auto& [source, at_ms] : first_by_source(run)) last_ms = std::max(last_ms, at_ms);
  return last_ms;
}

/// The one of median length among the runs of a kind that `fits`.
template <class Predicate>
std::optional<std::size_t> middle_run(const Results& results, const std::string& kind, Predicate fits) {
  std::vector<std::size_t> candidates;
  for (std::size_t i = 0; i < results.runs.size(); ++i) {
    const Run& run = results.runs[i];
    if (run.kind == kind && run.counts() && fits(run)) candidates.push_back(i);
  }
  if (candidates.empty()) return std::nullopt;
  std::ranges::stable_sort(candidates, {}, [&](std::size_t i) { return fault_length_ms(results.runs[i]); });
  return candidates[(candidates.size() - 1) / 2];
}

/// Takes the class's first kind that behaved as expected; where none did, its first.
std::optional<std::size_t> typical_run(const Results& results, const std::string& fault_class) {
  const auto first = [&](const auto& fits) -> std::optional<std::size_t> {
    for (const Expected& expected : results.expected) {
      if (expected.fault_class != fault_class || !expected.is_fault()) continue;
      if (const auto run = middle_run(results, expected.kind, fits)) return run;
    }
    return std::nullopt;
  };
  const auto as_expected = first([](const Run& run) { return run.mismatches.empty(); });
  return as_expected ? as_expected : first([](const Run&) { return true; });
}

}  // namespace

std::string most_frequent(const Counts& counts) {
  const auto found = std::ranges::max_element(counts, {}, &Counts::value_type::second);
  return found == counts.end() ? "" : found->first;
}

std::string fate_of(const Participant& participant) {
  if (!participant.error.empty()) return participant.error;
  return participant.end.empty() ? "lives" : participant.end;
}

Summary summarize(const Results& results) {
  Summary summary;
  for (const Expected& expected : results.expected) {
    summary.kinds.push_back(summarize_kind(expected, results.runs));
    if (summary.typical_runs.contains(expected.fault_class)) continue;
    if (const auto run = typical_run(results, expected.fault_class))
      summary.typical_runs[expected.fault_class] = *run;
  }
  return summary;
}

}  // namespace firebreak::characterize
