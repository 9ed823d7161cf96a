// SPDX-License-Identifier: Apache-2.0
#include "demo/timeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "ground/base/clock.h"

namespace firebreak::demo {
namespace {

/// Everything before the tenants' work is start-up, and is left out of the view.
std::int64_t first_step_ns(const ActRecord& act, std::int64_t fault_ns) {
  std::int64_t first = fault_ns;
  for (const ProcessRecord& process : act.processes) {
    if (!process.steps.empty()) first = std::min(first, process.steps.front().at_ns);
  }
  return first;
}

void mark_promotion(const ActRecord& act, const ProcessRecord& process, std::int64_t fault_ns, Lane& lane) {
  if (process.role != "standby") return;
  for (const abi::Event& event : act.events) {
    if (event.tenant != process.tenant) continue;
    const double at_ms = to_ms(Nanoseconds(event.at_ns - fault_ns));
    if (event.what == abi::EventKind::Promote)
      lane.marks.push_back({at_ms, 'P', fmt::format("promoted after {:.2f} ms", at_ms)});
    if (event.what == abi::EventKind::Resumed)
      lane.marks.push_back({at_ms, 'K', fmt::format("first kernel done after {:.2f} ms", at_ms)});
  }
}

}  // namespace

Timeline timeline_of(const ActRecord& act) {
  const std::int64_t fault_ns = act.rogue->launched_at_ns;
  auto at = [fault_ns](std::int64_t ns) { return to_ms(Nanoseconds(ns - fault_ns)); };
  Timeline timeline;
  timeline.begin_ms = at(first_step_ns(act, fault_ns));
  for (const ProcessRecord& process : act.processes) {
    Lane lane;
    lane.name = process.role == "rogue" ? process.tenant : process.tenant + " " + process.role;
    lane.begin_ms = std::max(at(process.started_at_ns), timeline.begin_ms);
    lane.end_ms = at(process.ended_at_ns != 0 ? process.ended_at_ns : act.ended_at_ns);
    for (const StepMark& step : process.steps) lane.steps_ms.push_back(at(step.at_ns));
    if (process.role == "rogue") lane.marks.push_back({0, '!', act.rogue->error_name});
    mark_promotion(act, process, fault_ns, lane);
    if (process.exit && !process.exit->clean()) lane.marks.push_back({lane.end_ms, 'X', process.last_words});
    timeline.end_ms = std::max(timeline.end_ms, lane.end_ms);
    timeline.lanes.push_back(std::move(lane));
  }
  return timeline;
}

}  // namespace firebreak::demo
