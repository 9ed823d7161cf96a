// SPDX-License-Identifier: Apache-2.0
#include "softgpu/nvml/event_set.h"

#include <algorithm>

namespace firebreak::softgpu {
namespace {

/// A writer that died between its record and its wake-up call delays it by this much at most.
constexpr std::int64_t longest_sleep_ns = 250'000'000;

}  // namespace

EventSet::EventSet(const std::vector<std::shared_ptr<SharedGpu>>& gpus) : first_(gpus.front()) {
  for (const auto& gpu : gpus) sources_.push_back({gpu, 0, {}});
}

void EventSet::listen(std::size_t gpu, std::uint64_t types) {
  const std::lock_guard lock(mutex_);
  Source& source = sources_.at(gpu);
  source.types |= types;
  if (!source.follower) source.follower.emplace(source.gpu->nvml().next_sequence());
}

std::optional<EventSet::Event> EventSet::take(std::int64_t now_ns, std::int64_t& look_again_ns) {
  const std::lock_guard lock(mutex_);
  for (std::size_t gpu = 0; gpu < sources_.size(); ++gpu) {
    Source& source = sources_[gpu];
    if (!source.follower) continue;
    source.follower->collect(source.gpu->nvml(), now_ns, [&](const NvmlEvent& event) {
      if ((event.type & source.types) != 0) waiting_.add(event.due_ns, Event{event, gpu});
    });
    look_again_ns = std::min(look_again_ns, now_ns + source.follower->sleep_ns(longest_sleep_ns));
  }
  if (const Event* due = waiting_.due(now_ns)) {
    const Event event = *due;
    waiting_.remove_first();
    return event;
  }
  look_again_ns = std::min(waiting_.next_due_ns().value_or(look_again_ns), look_again_ns);
  return std::nullopt;
}

std::optional<EventSet::Event> EventSet::wait(Nanoseconds timeout) {
  const std::int64_t deadline_ns = now_ns() + timeout.count();
  for (;;) {
    const std::uint32_t seen = wake().value();
    const std::int64_t now = now_ns();
    std::int64_t look_again_ns = std::min(deadline_ns, now + longest_sleep_ns);
    if (auto event = take(now, look_again_ns)) return event;
    if (now >= deadline_ns) return std::nullopt;
    wake().wait(seen, Nanoseconds(std::max<std::int64_t>(look_again_ns - now, 0)));
  }
}

}  // namespace firebreak::softgpu
