// SPDX-License-Identifier: Apache-2.0
#include "softgpu/nvml/event_set.h"

#include <algorithm>

namespace firebreak::softgpu {
namespace {

/// A writer that died between its record and its wake-up call delays it by this much at most.
constexpr std::int64_t longest_sleep_ns = 250'000'000;

}  // namespace

void EventSet::listen(std::uint64_t types) {
  const std::lock_guard lock(mutex_);
  types_ |= types;
  if (!follower_) follower_.emplace(gpu_->nvml().next_sequence());
}

std::optional<NvmlEvent> EventSet::take(std::int64_t now_ns, std::int64_t& look_again_ns) {
  const std::lock_guard lock(mutex_);
  if (follower_) {
    follower_->collect(gpu_->nvml(), now_ns, [this](const NvmlEvent& event) {
      if ((event.type & types_) != 0) waiting_.add(event.due_ns, event);
    });
  }
  if (const NvmlEvent* due = waiting_.due(now_ns)) {
    const NvmlEvent event = *due;
    waiting_.remove_first();
    return event;
  }
  if (follower_) look_again_ns = std::min(look_again_ns, now_ns + follower_->sleep_ns(longest_sleep_ns));
  look_again_ns = std::min(waiting_.next_due_ns().value_or(look_again_ns), look_again_ns);
  return std::nullopt;
}

std::optional<NvmlEvent> EventSet::wait(Nanoseconds timeout) {
  const std::int64_t deadline_ns = now_ns() + timeout.count();
  for (;;) {
    const std::uint32_t seen = gpu_->nvml_wake().value();
    const std::int64_t now = now_ns();
    std::int64_t look_again_ns = std::min(deadline_ns, now + longest_sleep_ns);
    if (auto event = take(now, look_again_ns)) return event;
    if (now >= deadline_ns) return std::nullopt;
    gpu_->nvml_wake().wait(seen, Nanoseconds(std::max<std::int64_t>(look_again_ns - now, 0)));
  }
}

}  // namespace firebreak::softgpu
