// SPDX-License-Identifier: Apache-2.0
#include "soak/takeovers.h"

#include "ground/base/clock.h"

namespace firebreak::soak {

void Takeovers::hear(const abi::Event& event) {
  if (event.what == abi::EventKind::Promote) ++promotions_;
  if (event.what == abi::EventKind::Injected) pending_[event.tenant] = {event.text, event.at_ns, 0};
  const auto pending = pending_.find(event.tenant);
  if (pending == pending_.end()) return;
  if (event.what == abi::EventKind::Promote) pending->second.promoted_at_ns = event.at_ns;
  if (event.what == abi::EventKind::Lost) {
    pending_.erase(pending);
    return;
  }
  if (event.what != abi::EventKind::Resumed || pending->second.promoted_at_ns == 0) return;
  const auto after_ms = [&](std::int64_t at_ns) {
    return to_ms(Nanoseconds(at_ns - pending->second.raised_at_ns));
  };
  Waits& waits = waits_[pending->second.kind];
  waits.promoted_ms.push_back(after_ms(pending->second.promoted_at_ns));
  waits.first_kernel_ms.push_back(after_ms(event.at_ns));
  pending_.erase(pending);
}

}  // namespace firebreak::soak
