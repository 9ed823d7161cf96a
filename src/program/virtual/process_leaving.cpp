// SPDX-License-Identifier: Apache-2.0
/// How a program leaves a domain that lives: it is asked to, and nothing forces it at this moment.
#include <algorithm>
#include <chrono>
#include <thread>

#include "program/virtual/process.h"

namespace firebreak::virtual_driver {

bool VirtualProcess::are_streams_idle(const Instance& instance) {
  const cuda::Backend& driver = instance.driver();
  bool are_idle = driver.cuStreamQuery(nullptr) != CUDA_ERROR_NOT_READY;
  objects_.for_each(Family::Stream, [&](Object& stream) {
    const std::uintptr_t own = stream.in[instance.slot()].load();
    if (!are_idle || own == 0 || stream.is_gone.load()) return;
    are_idle = driver.cuStreamQuery(reinterpret_cast<CUstream>(own)) != CUDA_ERROR_NOT_READY;
  });
  return are_idle;
}

/// What the GPU works on may need the program, by a callback or a word of the host's. So a move waits for an
/// idle GPU with the gate open first, and behind the closed gate hardly longer than that took. It asks
/// between captures, since whoever waits for a stream that is captured ends the capture.
Nanoseconds VirtualProcess::patience_at_gate(const Instance& from) {
  constexpr std::chrono::milliseconds longest_open(200);
  constexpr std::chrono::microseconds look_again(200);
  if (rule_of(from.pipe_directory()) != abi::DomainRule::Open) return settings_.longest_wait;
  const auto begun = std::chrono::steady_clock::now();
  Nanoseconds took{0};
  bool is_idle = false;
  const ContextScope scope(from);
  while (!is_idle && took < longest_open && !program_ends_.load()) {
    (void)graphs_.between_captures([&] { is_idle = are_streams_idle(from); });
    if (!is_idle) std::this_thread::sleep_for(look_again);
    took = std::chrono::steady_clock::now() - begun;
  }
  return is_idle ? std::max(2 * took, shortest_at_gate_) : shortest_at_gate_;
}

/// The program goes on at once, and is asked once more with more patience.
void VirtualProcess::try_later() {
  shortest_at_gate_ = std::min(2 * shortest_at_gate_, settings_.longest_wait);
  next_try_ = std::chrono::steady_clock::now() + between_tries;
}

/// A move that nothing forces.
bool VirtualProcess::leave_alive() {
  const Instance& from = active();
  const std::uint32_t life = from.life();
  if (!flip(Why::Asked, life, patience_at_gate(from))) return false;
  shortest_at_gate_ = first_at_gate;
  return true;
}

}  // namespace firebreak::virtual_driver
