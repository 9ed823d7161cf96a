// SPDX-License-Identifier: Apache-2.0
#include "characterize/summary_json.h"

#include <nlohmann/json.hpp>

namespace firebreak::characterize {
namespace {

using json = nlohmann::ordered_json;

json optional_spread_json(const std::optional<Spread>& spread, Values values) {
  return spread ? spread_json(*spread, values) : json();
}

json spreads_json(const std::map<std::string, Spread>& spreads, Values values) {
  json out = json::object();
  for (const auto& [name, spread] : spreads) out[name] = spread_json(spread, values);
  return out;
}

json kind_json(const KindSummary& kind, Values values) {
  return {{"kind", kind.expected.kind},
          {"class", kind.expected.fault_class},
          {"runs", kind.runs},
          {"problems", kind.problems},
          {"last_problem", kind.last_problem},
          {"refused", kind.refused},
          {"as_expected", kind.as_expected()},
          {"fates", kind.fates},
          {"xids", kind.xids},
          {"first_seen_by", kind.first_seen_by},
          {"signal_ms", spreads_json(kind.signal_ms, values)},
          {"stall_ms", spreads_json(kind.stall_ms, values)},
          {"served_ms", optional_spread_json(kind.served_ms, values)},
          {"not_served", kind.not_served},
          {"new_client_start_ms", optional_spread_json(kind.new_client_start_ms, values)},
          {"memory_left_bytes", optional_spread_json(kind.memory_left_bytes, values)},
          {"attribution", kind.attribution},
          {"mismatches", kind.mismatches}};
}

}  // namespace

json summary_json(const Summary& summary, Values values) {
  json out{{"typical_runs", summary.typical_runs}, {"kinds", json::array()}};
  for (const KindSummary& kind : summary.kinds) out["kinds"].push_back(kind_json(kind, values));
  return out;
}

}  // namespace firebreak::characterize
