// SPDX-License-Identifier: Apache-2.0
#include "agent/service/pulse.h"

#include <spdlog/spdlog.h>

namespace firebreak::agent {

Result<std::unique_ptr<Pulse>> Pulse::begin(os::EventLoop& loop, const Clock& clock,
                                            ServiceManager& manager) {
  const auto limit = manager.ends_the_silent_after();
  if (!limit) return nullptr;
  std::unique_ptr<Pulse> made(new Pulse(loop, clock, manager, *limit));
  made->given_ = clock.now();
  auto turns = loop.every(made->period_, [] {});
  if (!turns) return propagate(turns);
  made->turns_ = std::move(*turns);
  loop.after_each_turn([raw = made.get()](Nanoseconds took) { raw->turned(took); });
  return made;
}

Pulse::~Pulse() { loop_.after_each_turn(nullptr); }

void Pulse::turned(Nanoseconds took) {
  if (took > limit_ / 4) {
    spdlog::warn("a turn of the loop took {} ms; of {} ms the service manager takes it that we hang",
                 std::chrono::duration_cast<Milliseconds>(took).count(),
                 std::chrono::duration_cast<Milliseconds>(limit_).count());
  }
  const Monotonic now = clock_.now();
  if (now - given_ < period_ / 2) return;
  manager_.give_sign();
  given_ = now;
}

}  // namespace firebreak::agent
