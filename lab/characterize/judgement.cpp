// SPDX-License-Identifier: Apache-2.0
#include "characterize/judgement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace firebreak::characterize {
namespace {

std::string words(const std::string& error) { return error.empty() ? "no error" : error; }

std::string end_of(const Participant& victim) {
  if (!victim.error.empty()) return "died of " + victim.error;
  if (!victim.end.empty()) return fmt::format("ended ({})", victim.end);
  return "lived";
}

std::string expected_end(const std::string& error) {
  return error.empty() ? "expected to live" : "expected to die of " + error;
}

const char* name_of(Role role) {
  switch (role) {
    case Role::Faulter:
      return "the faulter";
    case Role::CoClient:
      return "the co-client";
    case Role::OtherDomain:
      return "the client of the other domain";
    case Role::Outside:
      return "the client without MPS";
  }
  return "?";
}

std::string numbers(const std::vector<int>& xids) {
  return xids.empty() ? "none" : fmt::format("{}", fmt::join(xids, ", "));
}

std::string nobody_if_empty(const std::string& source) { return source.empty() ? "nobody" : source; }

/// Two that come within this time of each other are equally early: which of them is read first is chance.
constexpr double equally_early_ms = 5;

/// Tells whether nobody was earlier than the source that is expected to be first.
bool is_first(const std::string& expected, const Run& run) {
  const std::string first = first_source(run);
  // A prefetch, which the hardware lets pass, is told all the same where guard ranges lie.
  if (expected.empty() && first == stray_source) return true;
  if (first == expected || first.empty()) return first == expected;
  const auto times = first_by_source(run);
  const auto found = times.find(expected);
  return found != times.end() && found->second - times.at(first) <= equally_early_ms;
}

void expect_no_harm(Expected& expected) {
  expected.faulter.clear();
  expected.co_client.clear();
  expected.outsider.clear();
  expected.sometimes.clear();
  expected.xids.clear();
}

}  // namespace

Expected expected_of(const inject::Kind& kind, const ErrorName& error_name) {
  const auto name = [&error_name](CUresult error) {
    return error == CUDA_SUCCESS ? std::string() : error_name(error);
  };
  const inject::Expectation& expectation = kind.expectation;
  Expected expected;
  expected.kind = kind.name;
  expected.summary = kind.summary;
  expected.fault_class = key_of(kind.fault_class);
  expected.faulter = name(expectation.faulter);
  expected.co_client = name(expectation.co_client);
  expected.outsider = name(expectation.outsider);
  expected.sometimes = name(expectation.sometimes);
  expected.xids.assign(expectation.xids.begin(), expectation.xids.end());
  if (expectation.first_seen_by) expected.first_seen_by = key_of(*expectation.first_seen_by);
  expected.measured = expectation.measured;
  return expected;
}

Expected expected_under_guard(const inject::Kind& kind, const ErrorName& error_name, bool maps_page_zero) {
  Expected expected = expected_of(kind, error_name);
  const inject::UnderGuard under_guard = kind.expectation.under_guard;
  const bool contained = under_guard == inject::UnderGuard::Contained ||
                         (under_guard == inject::UnderGuard::ContainedWithPageZero && maps_page_zero);
  if (!contained) return expected;
  expect_no_harm(expected);
  expected.first_seen_by = stray_source;
  return expected;
}

Expected expected_under_hold(const inject::Kind& kind, const ErrorName& error_name) {
  Expected expected = expected_of(kind, error_name);
  if (kind.fault_class == fault::FaultClass::Termination) expect_no_harm(expected);
  return expected;
}

std::vector<std::string> mismatches(const Run& run, const Expected& expected) {
  std::vector<std::string> found;
  if (!run.counts()) return found;
  const Participant& faulter = run.of(Role::Faulter);
  if (!expected.fits(faulter.error, expected.faulter)) {
    found.push_back(
        fmt::format("the faulter saw {}, expected {}", words(faulter.error), words(expected.faulter)));
  }
  for (const Role role : victim_roles) {
    const Participant& victim = run.of(role);
    const std::string& error = expected.victim(role);
    const bool as_expected = error.empty() ? !victim.died() : expected.fits(victim.error, error);
    if (!as_expected)
      found.push_back(fmt::format("{} {}, {}", name_of(role), end_of(victim), expected_end(error)));
  }
  const std::vector<int> xids = xids_of(run);
  if (xids != expected.xids)
    found.push_back(fmt::format("Xids {}, expected {}", numbers(xids), numbers(expected.xids)));
  if (!is_first(expected.first_seen_by, run)) {
    found.push_back(fmt::format("first seen by {}, expected {}", nobody_if_empty(first_source(run)),
                                nobody_if_empty(expected.first_seen_by)));
  }
  if (run.attribution.verdict == Verdict::Wrong)
    found.push_back(fmt::format("the wrong culprit was named: {}", run.attribution.names));
  return found;
}

bool seen_all(const Run& so_far, const Expected& expected) {
  const Participant& faulter = so_far.of(Role::Faulter);
  const bool answers = !expected.faulter.empty() || expected.is_contained();
  const bool faulter_is_done = !answers || faulter.error_ms || faulter.end_ms || faulter.answered_ms;
  const bool victims_fell = std::ranges::all_of(
      victim_roles, [&](Role role) { return expected.victim(role).empty() || so_far.of(role).died(); });
  const std::vector<int> xids = xids_of(so_far);
  const bool xids_came =
      std::ranges::all_of(expected.xids, [&](int xid) { return std::ranges::count(xids, xid) > 0; });
  return faulter_is_done && victims_fell && xids_came && expected.is_fault() &&
         first_by_source(so_far).contains(expected.first_seen_by);
}

}  // namespace firebreak::characterize
