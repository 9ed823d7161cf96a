// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/fault/incident.h"

#include <algorithm>

namespace firebreak::fault {

bool is_contained(const Incident& incident) {
  const auto is_uncontained = [](const Fault& signal) {
    return signal.source == FaultSource::Isolation && signal.conclusive && !signal.contained;
  };
  return incident.xids.empty() && std::ranges::any_of(incident.signals, &Fault::contained) &&
         std::ranges::none_of(incident.signals, is_uncontained);
}

const char* to_string(Confidence confidence) {
  switch (confidence) {
    case Confidence::Unknown:
      return "unknown";
    case Confidence::Probable:
      return "probable";
    case Confidence::Certain:
      return "certain";
  }
  return "unknown";
}

}  // namespace firebreak::fault
