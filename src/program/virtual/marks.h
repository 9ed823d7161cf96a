// SPDX-License-Identifier: Apache-2.0
/// How far streams have come, as the GPU says itself: words in the host's memory that it counts up between
/// the program's operations. So little of what a program has given is in doubt when its domain dies.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "ground/base/clock.h"
#include "ground/os/memory.h"
#include "program/virtual/given_work.h"
#include "program/virtual/instance.h"
#include "program/virtual/memory.h"
#include "program/virtual/objects.h"

namespace firebreak::virtual_driver {

/// Thread safe.
class Marks {
 public:
  /// `between`: two marks of one stream, at least.
  Marks(WindowMemory& memory, Nanoseconds between) : memory_(memory), between_(between) {}

  /// Puts one behind all that is in that stream, if it is time for it. `stream`: as the instance calls it.
  /// `work` is that stream's alone, and the calling one of its givers has just
  /// given something. Not while anything is captured.
  void maybe_put(const Instance& instance, Work& work, CUstream stream, GivenWork& given) {
    if (is_off_.load(std::memory_order_relaxed)) return;
    const std::int64_t now_ns = to_ns(SystemClock().now());
    if (now_ns - work.marked_ns.load(std::memory_order_relaxed) < between_.count()) [[likely]]
      return;
    work.marked_ns.store(now_ns, std::memory_order_relaxed);
    put(instance, work, stream, given);
  }

  /// What the GPU has marked since has ended.
  void take_up(Work& work) const;

 private:
  static constexpr std::size_t words_max = 1024;

  void put(const Instance& instance, Work& work, CUstream stream, GivenWork& given);
  /// Where that instance's GPU sees the words; 0: nowhere.
  CUdeviceptr address_in(const Instance& instance);
  std::atomic<std::uint32_t>& word(std::size_t number) const {
    return reinterpret_cast<std::atomic<std::uint32_t>*>(words_.data())[number];
  }
  bool give_word(Work& work);

  WindowMemory& memory_;
  const Nanoseconds between_;
  std::atomic<bool> is_off_{false};  ///< the driver does not do it
  std::mutex mutex_;                 ///< guards what follows while it changes
  os::Mapping words_;
  std::atomic<std::uint64_t> known_{0};  ///< the life of an instance, plus one
  std::atomic<CUdeviceptr> address_{0};  ///< in that one
  std::atomic<std::uint32_t> words_taken_{0};
};

}  // namespace firebreak::virtual_driver
