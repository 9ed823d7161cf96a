// SPDX-License-Identifier: Apache-2.0
#include "program/guard/work_log.h"

#include <algorithm>
#include <cstring>

namespace firebreak::guard {
namespace {

/// Number of launches without a marker behind them; so many fit into the driver's queue many times: the
/// marker does not wait for room there.
constexpr std::uint32_t unfinished_max = 64;

}  // namespace

/// Nothing is under way, or ever will be without another launch.
bool WorkLog::is_idle(std::size_t slot) const {
  const abi::GuardLaunches& launches = work_.launches[slot];
  const std::uint32_t begun = launches.begun.load();
  return launches.launched.load() == begun && work_.done[slot].load() == begun;
}

/// One that nobody counts in: of the same stream, else one whose work has ended, else a new one.
std::size_t WorkLog::choose(CUstream stream) const {
  std::size_t best = owners_.size();
  for (std::size_t slot = 0; slot < owners_.size(); ++slot) {
    const Owner& owner = owners_[slot];
    if (owner.thread != 0) continue;
    if (owner.has_stream && owner.stream == stream) return slot;
    if (is_idle(slot)) best = std::min(best, slot);
  }
  return best;
}

abi::GuardLaunches* WorkLog::slot(Thread thread, CUstream stream, StreamKind kind) {
  const std::lock_guard lock(mutex_);
  const auto known = slots_.find({thread, stream});
  if (known != slots_.end()) return &work_.launches[known->second];
  legacy_used_ = legacy_used_ || kind == StreamKind::Legacy;
  blocking_seen_ = blocking_seen_ || kind == StreamKind::Blocking || kind == StreamKind::PerThread;
  const std::size_t slot = choose(stream);
  if (slot == abi::guard_launch_slots_max) {
    note_gap(abi::GuardWorkSlotsFull);
    return nullptr;
  }
  if (slot == owners_.size()) {
    owners_.emplace_back();
    work_.slots.store(static_cast<std::uint32_t>(owners_.size()), std::memory_order_release);
  }
  Owner& owner = owners_[slot];
  owner.thread = thread;
  owner.stream = stream;
  owner.kind = kind;
  owner.has_stream = true;
  slots_[{thread, stream}] = slot;
  return &work_.launches[slot];
}

void WorkLog::thread_ended(Thread thread) {
  const std::lock_guard lock(mutex_);
  std::erase_if(slots_, [&](const auto& entry) {
    if (entry.first.first != thread) return false;
    owners_[entry.second].thread = 0;
    return true;
  });
}

std::uint16_t WorkLog::kernel(const std::string& name) {
  if (name.empty()) return 0;
  const std::lock_guard lock(mutex_);
  const auto known = kernels_.find(name);
  if (known != kernels_.end()) return known->second;
  const std::size_t next = kernels_.size() + 1;
  if (next == abi::guard_kernels_max) return 0;
  char* const text = work_.kernel[next];
  const std::size_t length = std::min(name.size(), abi::guard_kernel_name_bytes - 1);
  std::memcpy(text, name.data(), length);
  work_.kernels.store(static_cast<std::uint32_t>(next + 1), std::memory_order_release);
  return kernels_[name] = static_cast<std::uint16_t>(next);
}

void WorkLog::note_blocking_stream() {
  const std::lock_guard lock(mutex_);
  blocking_seen_ = true;
}

bool WorkLog::may_be_marked(const Owner& owner) const {
  switch (owner.kind) {
    case StreamKind::Independent:
      return true;
    case StreamKind::Legacy:
      return !blocking_seen_;
    case StreamKind::Blocking:
      return !legacy_used_;
    case StreamKind::PerThread:
      break;  // its own thread alone can reach it
  }
  return false;
}

bool WorkLog::wants_marker(std::size_t slot) const {
  if (!owners_[slot].has_stream || !may_be_marked(owners_[slot])) return false;
  const abi::GuardLaunches& launches = work_.launches[slot];
  const std::uint32_t launched = launches.launched.load(std::memory_order_acquire);
  const std::uint32_t marked = launches.marked.load();
  const std::uint32_t done = work_.done[slot].load();
  return launched != marked && launched != done && (done == marked || launched - done < unfinished_max);
}

std::vector<WorkLog::Due> WorkLog::due() const {
  const std::lock_guard lock(mutex_);
  std::vector<Due> due;
  for (std::size_t slot = 0; slot < owners_.size(); ++slot) {
    if (wants_marker(slot)) due.push_back({slot, owners_[slot].stream, work_.launches[slot].launched.load()});
  }
  return due;
}

std::vector<WorkLog::Due> WorkLog::due_of(CUstream stream) const {
  std::vector<Due> due = this->due();
  std::erase_if(due, [stream](const Due& each) { return each.stream != stream; });
  return due;
}

template <class IsMeant>
std::vector<WorkLog::Due> WorkLog::under_way_of(const IsMeant& is_meant) const {
  const std::lock_guard lock(mutex_);
  std::vector<Due> all;
  for (std::size_t slot = 0; slot < owners_.size(); ++slot) {
    if (!is_meant(owners_[slot])) continue;
    const std::uint32_t launched = work_.launches[slot].launched.load(std::memory_order_acquire);
    if (launched != work_.done[slot].load()) all.push_back({slot, owners_[slot].stream, launched});
  }
  return all;
}

std::vector<WorkLog::Due> WorkLog::unmarked() const {
  return under_way_of([this](const Owner& owner) {
    return owner.has_stream && !may_be_marked(owner) && owner.kind != StreamKind::PerThread;
  });
}

std::vector<WorkLog::Due> WorkLog::under_way() const {
  return under_way_of([](const Owner&) { return true; });
}

/// What a stream was that is gone has its handle, and may go on. A stream that each thread has for itself
/// has the same handle for all of them.
std::vector<WorkLog::Due> WorkLog::under_way_in(Thread thread, CUstream stream) const {
  return under_way_of([&](const Owner& owner) {
    const bool is_anothers = owner.kind == StreamKind::PerThread && owner.thread != thread;
    return owner.has_stream && owner.stream == stream && !is_anothers;
  });
}

/// The GPU's word for more may have come meanwhile.
void WorkLog::ended(const Due& due) {
  std::atomic<std::uint32_t>& done = work_.done[due.slot];
  std::uint32_t before = done.load();
  while (static_cast<std::int32_t>(due.value - before) > 0 &&
         !done.compare_exchange_weak(before, due.value)) {
  }
}

void WorkLog::marked(const Due& due) { work_.launches[due.slot].marked.store(due.value); }

void WorkLog::stream_gone(CUstream stream) {
  const std::lock_guard lock(mutex_);
  std::erase_if(slots_, [stream](const auto& entry) { return entry.first.second == stream; });
  for (Owner& owner : owners_) {
    if (!owner.has_stream || owner.stream != stream) continue;
    owner.has_stream = false;
    owner.thread = 0;
  }
}

void WorkLog::all_ended() {
  const std::lock_guard lock(mutex_);
  for (std::size_t slot = 0; slot < owners_.size(); ++slot) {
    abi::GuardLaunches& launches = work_.launches[slot];
    const std::uint32_t launched = launches.launched.load();
    launches.marked.store(launched);
    work_.done[slot].store(launched);
  }
}

bool WorkLog::settle() {
  const std::lock_guard lock(mutex_);
  bool changed = false;
  for (std::size_t slot = 0; slot < owners_.size(); ++slot) {
    abi::GuardLaunches& launches = work_.launches[slot];
    launches.settled.store(owners_[slot].done_before, std::memory_order_release);
    const std::uint32_t done = work_.done[slot].load();
    changed = changed || done != owners_[slot].done_before || launches.begun.load() != done;
    owners_[slot].done_before = done;
  }
  return changed;
}

}  // namespace firebreak::guard
