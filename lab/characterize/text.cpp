// SPDX-License-Identifier: Apache-2.0
#include "characterize/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace firebreak::characterize {
namespace {

/// "CUDA_ERROR_ILLEGAL_ADDRESS" takes a third of a line.
std::string shortened(std::string fate) {
  constexpr std::string_view prefix = "CUDA_ERROR_";
  if (fate.starts_with(prefix)) fate.erase(0, prefix.size());
  std::ranges::transform(fate, fate.begin(), [](char c) {
    if (c == '_') return ' ';
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return fate;
}

std::string fate(const KindSummary& kind, Role role) {
  const auto found = kind.fates.find(key_of(role));
  return found == kind.fates.end() ? "-" : shortened(most_frequent(found->second));
}

std::string first_sight(const KindSummary& kind) {
  const std::string source = most_frequent(kind.first_seen_by);
  const auto found = kind.signal_ms.find(source);
  if (found == kind.signal_ms.end()) return source;
  return fmt::format("{} {:.2f}", source, found->second.p50);
}

std::string counts(const Counts& counted) {
  std::string text;
  for (const auto& [name, count] : counted)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name);
  return text;
}

std::string kind_line(const KindSummary& kind) {
  if (!kind.refused.empty()) return fmt::format("{:<24} refused: {}\n", kind.expected.kind, kind.refused);
  if (kind.runs == 0 && kind.problems == 0) return fmt::format("{:<24} has not run\n", kind.expected.kind);
  return fmt::format("{:<24} {:>4}  {:<20} {:<20} {:<8} {:<24} {}\n", kind.expected.kind, kind.runs,
                     fate(kind, Role::Faulter), fate(kind, Role::CoClient), most_frequent(kind.xids),
                     first_sight(kind), counts(kind.attribution));
}

/// "39 of 41 kinds as expected, 6 refused, 2 have not run".
std::string totals(const Summary& summary) {
  int ran = 0;
  int as_expected = 0;
  int refused = 0;
  for (const KindSummary& kind : summary.kinds) {
    if (!kind.refused.empty()) ++refused;
    if (kind.runs == 0 && kind.problems == 0) continue;
    ++ran;
    if (kind.as_expected()) ++as_expected;
  }
  const auto not_yet = static_cast<int>(summary.kinds.size()) - ran - refused;
  std::string text = fmt::format("{} of {} kinds as expected", as_expected, ran);
  if (refused > 0) text += fmt::format(", {} refused", refused);
  if (not_yet > 0) text += fmt::format(", {} not run", not_yet);
  return text;
}

}  // namespace

std::string render(const Summary& summary) {
  std::string text = fmt::format("{:<24} {:>4}  {:<20} {:<20} {:<8} {:<24} {}\n", "kind", "runs", "faulter",
                                 "co-client", "Xids", "first seen by, ms", "culprit");
  for (const KindSummary& kind : summary.kinds) text += kind_line(kind);
  text += "\n" + totals(summary) + "\n";
  for (const KindSummary& kind : summary.kinds) {
    for (const auto& [line, count] : kind.mismatches)
      text += fmt::format("  {}: {} ({} of {} runs)\n", kind.expected.kind, line, count, kind.runs);
    if (kind.problems > 0)
      text += fmt::format("  {}: {} runs did not get to their end: {}\n", kind.expected.kind, kind.problems,
                          kind.last_problem);
  }
  return text;
}

}  // namespace firebreak::characterize
