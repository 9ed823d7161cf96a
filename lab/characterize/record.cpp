// SPDX-License-Identifier: Apache-2.0
#include "characterize/record.h"

#include <algorithm>

#include "agent/faults/fault/source_traits.h"

namespace firebreak::characterize {

const char* key_of(Role role) {
  switch (role) {
    case Role::Faulter:
      return "faulter";
    case Role::CoClient:
      return "co_client";
    case Role::OtherDomain:
      return "other_domain";
    case Role::Outside:
      return "outside";
  }
  return "unknown";
}

const char* key_of(fault::FaultSource source) { return fault::traits_of(source).key; }

const char* key_of(fault::FaultClass fault_class) {
  switch (fault_class) {
    case fault::FaultClass::MmuReplayable:
      return "mmu_replayable";
    case fault::FaultClass::MmuNonReplayable:
      return "mmu_non_replayable";
    case fault::FaultClass::Sm:
      return "sm";
    case fault::FaultClass::Termination:
      return "termination";
    case fault::FaultClass::Device:
      return "device";
    case fault::FaultClass::Unknown:
      return "unknown";
  }
  return "unknown";
}

const char* key_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::Nothing:
      return "nothing";
    case Verdict::Unknown:
      return "unknown";
    case Verdict::Right:
      return "right";
    case Verdict::Wrong:
      return "wrong";
  }
  return "nothing";
}

const Participant& Run::of(Role role) const {
  static const Participant nobody;
  const auto found = participants.find(key_of(role));
  return found == participants.end() ? nobody : found->second;
}

std::map<std::string, double> first_by_source(const Run& run) {
  std::map<std::string, double> first;
  const auto see = [&first](const std::string& source, double at_ms) {
    const auto [place, is_new] = first.emplace(source, at_ms);
    if (!is_new) place->second = std::min(place->second, at_ms);
  };
  for (const Signal& signal : run.signals) see(signal.source, signal.after_ms);
  if (const auto at_ms = run.of(Role::Faulter).error_ms) see(key_of(fault::FaultSource::CudaError), *at_ms);
  if (const auto at_ms = run.of(Role::Faulter).answered_ms) see(answer_source, *at_ms);
  if (const auto at_ms = run.of(Role::CoClient).error_ms) see(co_client_error_source, *at_ms);
  return first;
}

std::string first_source(const Run& run) {
  std::string earliest;
  double earliest_ms = 0;
  for (const auto& [source, at_ms] : first_by_source(run)) {
    const bool from_outside = source != co_client_error_source && source != answer_source &&
                              source != key_of(fault::FaultSource::CudaError);
    if (!from_outside || (!earliest.empty() && at_ms >= earliest_ms)) continue;
    earliest = source;
    earliest_ms = at_ms;
  }
  return earliest;
}

std::vector<int> xids_of(const Run& run) {
  std::vector<int> xids;
  for (const Signal& signal : run.signals) {
    const bool in_log = signal.source == key_of(fault::FaultSource::Xid) && signal.xid;
    if (in_log && !std::ranges::count(xids, *signal.xid)) xids.push_back(*signal.xid);
  }
  return xids;
}

}  // namespace firebreak::characterize
