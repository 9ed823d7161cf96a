// SPDX-License-Identifier: Apache-2.0
#include "demo/play.h"

#include <algorithm>

#include "ground/base/clock.h"

namespace firebreak::demo {

const char* title(Act act) {
  switch (act) {
    case Act::Reference:
      return "reference";
    case Act::StockMps:
      return "stock MPS";
    case Act::Firebreak:
      return "Firebreak";
    case Act::Parked:
      return "parked";
  }
  return "?";
}

namespace {

const abi::Event* first_event(const ActRecord& act, abi::EventKind what, const std::string& tenant) {
  const auto found = std::ranges::find_if(act.events, [&](const abi::Event& event) {
    return event.what == what && (tenant.empty() || event.tenant == tenant);
  });
  return found == act.events.end() ? nullptr : &*found;
}

/// The first sign of the fault that concerns the rogue's domain, or the rogue's own end.
const abi::Event* first_sign(const ActRecord& act, std::int64_t launched_at_ns) {
  const abi::Event* first = nullptr;
  for (const abi::Event& event : act.events) {
    const bool sign = (event.what == abi::EventKind::Fault && !event.domain.empty()) ||
                      (event.what == abi::EventKind::Exited && event.tenant == "rogue");
    if (sign && event.at_ns >= launched_at_ns && (first == nullptr || event.at_ns < first->at_ns))
      first = &event;
  }
  return first;
}

}  // namespace

std::vector<Recovery> recoveries_of(const ActRecord& act) {
  std::vector<Recovery> recoveries;
  if (!act.rogue) return recoveries;
  const std::int64_t launched = act.rogue->launched_at_ns;
  auto after_launch_ms = [launched](std::int64_t at_ns) { return to_ms(Nanoseconds(at_ns - launched)); };
  const abi::Event* sign = first_sign(act, launched);
  for (const TenantOutcome& outcome : act.outcomes) {
    const abi::Event* promote = first_event(act, abi::EventKind::Promote, outcome.tenant);
    const abi::Event* resumed = first_event(act, abi::EventKind::Resumed, outcome.tenant);
    if (promote == nullptr || resumed == nullptr || sign == nullptr) continue;
    Recovery recovery;
    recovery.tenant = outcome.tenant;
    recovery.detected_ms = after_launch_ms(sign->at_ns);
    recovery.detected_by = sign->what == abi::EventKind::Exited ? "process exit" : sign->source;
    recovery.promoted_ms = after_launch_ms(promote->at_ns);
    recovery.resumed_ms = after_launch_ms(resumed->at_ns);
    recovery.steps_lost = static_cast<std::int64_t>(promote->step) - static_cast<std::int64_t>(resumed->step);
    recoveries.push_back(std::move(recovery));
  }
  return recoveries;
}

}  // namespace firebreak::demo
