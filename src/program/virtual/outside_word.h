// SPDX-License-Identifier: Apache-2.0
/// How much work the program has given its GPU, and up to where all of it is known to have ended: two numbers
/// that somebody outside reads, also when the process is dead.
#pragma once

#include <atomic>
#include <cstdint>

namespace firebreak::virtual_driver {

/// Thread safe. The numbers wrap.
class OutsideWord {
 public:
  OutsideWord() = default;
  OutsideWord(const OutsideWord&) = delete;
  OutsideWord& operator=(const OutsideWord&) = delete;

  /// From now on the numbers are these, which outlive it.
  void be_told_at(std::atomic<std::uint32_t>& begun, std::atomic<std::uint32_t>& ended) {
    begun.store(begun_.load()->load());
    ended.store(ended_.load()->load());
    begun_.store(&begun);
    ended_.store(&ended);
  }
  /// Before the driver is given an operation.
  void begin() { begun_.load(std::memory_order_relaxed)->fetch_add(1); }
  std::uint32_t begun() const { return begun_.load()->load(); }
  bool is_behind() const { return begun() != ended_.load()->load(); }
  /// `up_to`: what begun() was before somebody began to wait.
  void end(std::uint32_t up_to) {
    std::atomic<std::uint32_t>& ended = *ended_.load();
    std::uint32_t before = ended.load();
    while (static_cast<std::int32_t>(up_to - before) > 0 && !ended.compare_exchange_weak(before, up_to)) {
    }
  }

 private:
  std::atomic<std::uint32_t> first_begun_{0};
  std::atomic<std::uint32_t> first_ended_{0};
  std::atomic<std::atomic<std::uint32_t>*> begun_{&first_begun_};
  std::atomic<std::atomic<std::uint32_t>*> ended_{&first_ended_};
};

}  // namespace firebreak::virtual_driver
