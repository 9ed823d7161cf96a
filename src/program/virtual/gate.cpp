// SPDX-License-Identifier: Apache-2.0
#include "program/virtual/gate.h"

#include <thread>
#include <utility>

#include "ground/os/memory.h"
#include "ground/os/self.h"

namespace firebreak::virtual_driver {
namespace {

/// Of all threads that ever came by.
constinit std::atomic<Lane*> lanes{nullptr};

constinit thread_local Lane* own = nullptr;

/// Gives the thread's lane back at its end. What else ends with the thread may call the driver after that: it
/// gets another lane, which stays its own.
struct ThreadEnd {
  bool wanted = false;
  ~ThreadEnd() {
    Lane* const lane = std::exchange(own, nullptr);
    if (lane == nullptr) return;
    lane->depth = 0;  // The thread may have left a call by a jump.
    lane->inside.store(false, std::memory_order_release);
    lane->has_thread.store(false, std::memory_order_release);
  }
};
thread_local ThreadEnd thread_end;

Lane& keep(Lane* lane) {
  thread_end.wanted = true;
  own = lane;
  return *lane;
}

}  // namespace

bool Gate::prepare_barrier() { return os::prepare_process_barrier(); }

Lane& Gate::own_lane() {
  if (own != nullptr) [[likely]]
    return *own;
  for (Lane* lane = lanes.load(std::memory_order_acquire); lane != nullptr; lane = lane->next) {
    bool taken = false;
    if (!lane->has_thread.compare_exchange_strong(taken, true)) continue;
    lane->passes_closed = false;
    return keep(lane);
  }
  auto* const made = new Lane;  // for ever: close() looks at it whenever it wants to
  made->next = lanes.load(std::memory_order_relaxed);
  while (!lanes.compare_exchange_weak(made->next, made, std::memory_order_seq_cst)) {
  }
  return keep(made);
}

void Gate::wait_outside(Lane& lane) {
  lane.inside.store(false, std::memory_order_release);
  for (std::uint32_t closed = 0; (closed = closed_.load(std::memory_order_acquire)) != 0;)
    os::futex_wait(closed_, closed, std::nullopt);
}

bool Gate::is_anybody_inside() const {
  for (const Lane* lane = lanes.load(std::memory_order_seq_cst); lane != nullptr; lane = lane->next) {
    if (lane->inside.load(std::memory_order_seq_cst)) return true;
  }
  return false;
}

bool Gate::close(Nanoseconds longest) {
  constexpr std::chrono::microseconds look_again(20);
  closed_.fetch_add(1, std::memory_order_seq_cst);
  if (cheap_) os::pass_process_barrier();
  const auto until = std::chrono::steady_clock::now() + longest;
  while (is_anybody_inside()) {
    if (std::chrono::steady_clock::now() >= until) {
      open();
      return false;
    }
    std::this_thread::sleep_for(look_again);
  }
  return true;
}

bool Gate::await_those_inside(Nanoseconds longest) {
  constexpr std::chrono::microseconds look_again(200);
  if (cheap_) os::pass_process_barrier();
  const auto until = std::chrono::steady_clock::now() + longest;
  for (const Lane* lane = lanes.load(std::memory_order_seq_cst); lane != nullptr; lane = lane->next) {
    const std::uint32_t passes = lane->passes.load(std::memory_order_acquire);
    while (lane->inside.load(std::memory_order_seq_cst) &&
           lane->passes.load(std::memory_order_acquire) == passes) {
      if (std::chrono::steady_clock::now() >= until) return false;
      std::this_thread::sleep_for(look_again);
    }
  }
  return true;
}

void Gate::open() {
  if (closed_.fetch_sub(1, std::memory_order_release) == 1) os::futex_wake(closed_);
}

void Gate::forget_own_calls() {
  if (own == nullptr) return;
  own->depth = 0;
  own->inside.store(false, std::memory_order_release);
}

void Gate::begin_anew() {
  closed_.store(0);
  for (Lane* lane = lanes.load(); lane != nullptr; lane = lane->next) {
    if (lane == own) continue;
    lane->inside.store(false);
    lane->has_thread.store(false);
    lane->depth = 0;
  }
}

}  // namespace firebreak::virtual_driver
