// SPDX-License-Identifier: Apache-2.0
#include "softgpu/interpreter/interleaved.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "softgpu/interpreter/warp_sync.h"

namespace firebreak::softgpu {
namespace {

/// Blocks that run at the same time, as many as an SM has at most.
constexpr std::size_t most_resident = 32;

class InterleavedRun {
 public:
  InterleavedRun(const Launch& launch, std::uint32_t shared_bytes, LaunchState& state,
                 ExecutionControl& control)
      : launch_(launch),
        shared_bytes_(shared_bytes),
        state_(state),
        control_(control),
        turns_(launch.interleaving->seed),
        waiting_(std::size_t{launch.grid.x} * launch.grid.y * launch.grid.z) {
    state_.turns = &turns_;
    state_.is_watched = true;
    std::iota(waiting_.begin(), waiting_.end(), std::uint64_t{0});
  }

  LaunchOutcome run() {
    while (has_work()) {
      if (steps_ >= launch_.interleaving->most_steps || asked_to_stop()) return Stopped{};
      find_ready();
      // Nothing changes any more: a barrier that nobody will complete.
      if (ready_.empty()) return Stopped{};
      take_turn(ready_[turns_.below(static_cast<std::uint32_t>(ready_.size()))]);
      if (state_.is_stopped_by_observer) return Stopped{};
      if (state_.fault) return *std::move(state_.fault);
    }
    return Completed{state_.instructions};
  }

 private:
  struct Resident {
    std::unique_ptr<Block> block;
    std::uint64_t place = 0;
  };
  struct Ready {
    std::size_t resident = 0;
    std::size_t warp = 0;
  };

  bool asked_to_stop() {
    return control_.attention.load(std::memory_order_acquire) != 0 && control_.should_stop();
  }

  // Blocks that have ended make room for the next ones, any of those that wait.
  bool has_work() {
    for (Resident& each : residents_)
      if (each.block->finished() && !waiting_.empty()) start(each);
    while (residents_.size() < most_resident && !waiting_.empty()) {
      residents_.push_back({std::make_unique<Block>(state_, launch_, shared_bytes_), 0});
      start(residents_.back());
    }
    return std::ranges::any_of(residents_, [](const Resident& each) { return !each.block->finished(); });
  }

  void start(Resident& resident) {
    std::uint64_t& chosen = waiting_[turns_.below(static_cast<std::uint32_t>(waiting_.size()))];
    resident.place = std::exchange(chosen, waiting_.back());
    waiting_.pop_back();
    resident.block->start(block_at(launch_.grid, resident.place));
  }

  void find_ready() {
    ready_.clear();
    add_ready([](Warp& warp) { return warp.can_run(); });
    if (!ready_.empty()) return;
    // A thread that has ended kept these waiting.
    for (const Resident& each : residents_)
      for (std::uint32_t barrier = 0; barrier < barrier_count; ++barrier)
        each.block->release_if_complete(barrier);
    add_ready([](Warp& warp) { return warp.can_run() || release_sync(warp); });
  }

  template <class CanRun>
  void add_ready(CanRun can_run) {
    for (std::size_t i = 0; i < residents_.size(); ++i) {
      const auto& warps = residents_[i].block->warps;
      for (std::size_t warp = 0; warp < warps.size(); ++warp)
        if (!warps[warp]->finished() && can_run(*warps[warp])) ready_.push_back({i, warp});
    }
  }

  void take_turn(const Ready& ready) {
    const Resident& resident = residents_[ready.resident];
    state_.first_thread = resident.place * resident.block->thread_count;
    const std::uint32_t quantum = turns_.quantum();
    resident.block->warps[ready.warp]->run(quantum);
    steps_ += quantum;
    if (state_.fault) state_.fault->block = resident.place;
  }

  const Launch& launch_;
  const std::uint32_t shared_bytes_;
  LaunchState& state_;
  ExecutionControl& control_;
  Turns turns_;
  std::vector<std::uint64_t> waiting_;
  std::vector<Resident> residents_;
  std::vector<Ready> ready_;
  std::uint64_t steps_ = 0;
};

}  // namespace

// Some runs change hands at each instruction, some rarely: a thread may then be far ahead of its neighbours.
Turns::Turns(std::uint64_t seed) : state_(seed) {
  longest_log2_ = 1 + below(12);
  splits_warps_ = below(4) != 0;
}

// splitmix64
std::uint64_t Turns::next() {
  state_ += 0x9E37'79B9'7F4A'7C15;
  std::uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58'476D'1CE4'E5B9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D0'49BB'1331'11EB;
  return mixed ^ (mixed >> 31);
}

std::uint32_t Turns::below(std::uint32_t bound) { return static_cast<std::uint32_t>((next() >> 32) % bound); }

std::uint32_t Turns::quantum() { return 1U << below(longest_log2_); }

LaneMask Turns::some_of(LaneMask mask) {
  if (!splits_warps_ || below(8) != 0) return mask;
  const LaneMask some = mask & static_cast<LaneMask>(next());
  return some == 0 ? mask : some;
}

LaunchOutcome run_interleaved(const Launch& launch, std::uint32_t shared_bytes, LaunchState& state,
                              ExecutionControl& control) {
  return InterleavedRun(launch, shared_bytes, state, control).run();
}

}  // namespace firebreak::softgpu
