// SPDX-License-Identifier: Apache-2.0
/// A counter in shared memory that sleepers of any process wait on (a futex).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace firebreak::softgpu {

/// A word to wait on; all zero is the valid start. Read `value()` first, look at the state, then wait for a
/// change of that value.
class WakeWord {
 public:
  std::uint32_t value() const { return word_.load(std::memory_order_acquire); }
  void wake_all();
  /// Returns when the value differs from `seen`, after `timeout`, or for no reason.
  void wait(std::uint32_t seen, std::chrono::nanoseconds timeout) const;

 private:
  std::atomic<std::uint32_t> word_;
};

}  // namespace firebreak::softgpu
