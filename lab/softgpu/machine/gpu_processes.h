// SPDX-License-Identifier: Apache-2.0
/// The processes that have the software GPU open, and how much of its memory each holds. A process's place is
/// a lock on one byte of the machine's file. Linux gives the lock back when the process ends or becomes
/// another program (exec), however that came about: nothing is left behind for others to clear away.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "ground/base/result.h"

namespace firebreak::softgpu {

/// The table in shared memory; all zero is the valid start.
struct GpuProcessTable {
  static constexpr std::size_t capacity = 256;
  static constexpr std::size_t kept_max = 32;
  std::array<std::atomic<std::uint64_t>, capacity> used_bytes;
  std::array<std::atomic<std::uint64_t>, capacity>
      context_bytes;  ///< told, and never refused: nothing is behind it
  std::array<std::atomic<std::int32_t>, capacity> pid;
  std::array<std::atomic<std::int32_t>, kept_max> kept;  ///< dead, and not gone from the GPU; 0: nobody
};

/// One that has the GPU open.
struct GpuProcess {
  pid_t pid = 0;
  std::uint64_t used_bytes = 0;  ///< memory with what its contexts take
};

/// The view of this process. Thread safe, but for enter().
class GpuProcesses {
 public:
  /// `fd` is the machine's file, opened by this process for itself and kept open while this object lives.
  GpuProcesses(int fd, GpuProcessTable& table) : fd_(fd), table_(table) {}

  /// Takes a place. `when_first` runs before anybody else can enter, if no process has one. Again is fine.
  template <class Action>
  Status enter(Action&& when_first) {
    if (Status locked = lock_entry(); !locked) return locked;
    const bool first = !has_place() && !somebody_else();
    const Status taken = take_place();
    if (taken && first) std::forward<Action>(when_first)();
    unlock_entry();
    return taken;
  }

  /// Limits this process to that from now on.
  void limit_own(std::uint64_t bytes) { own_limit_.store(bytes); }
  /// Returns what this process may still have by its own limit.
  std::uint64_t left_of_own_limit() const;
  /// False before enter().
  bool take_memory(std::uint64_t size_bytes, std::uint64_t limit_bytes);
  void give_memory(std::uint64_t size_bytes);
  /// Counts what the contexts of this process take, more or less than before.
  void count_context_memory(std::int64_t change_bytes);
  /// Returns the sum over all processes that are there.
  std::uint64_t used_bytes() const;
  /// Returns what contexts take, over all processes.
  std::uint64_t context_bytes() const;

  /// Lists all processes that are there, and dead ones whose address space somebody keeps.
  std::vector<GpuProcess> list() const;
  void keep(pid_t pid);
  void forget(pid_t pid);
  void forget_all();

 private:
  using Bytes = std::array<std::atomic<std::uint64_t>, GpuProcessTable::capacity>;
  std::uint64_t sum_of(const Bytes& each_bytes) const;
  Status lock_entry();
  void unlock_entry();
  bool somebody_else() const;
  Status take_place();
  bool is_there(std::size_t place) const;
  bool has_place() const { return own_place_.load() < GpuProcessTable::capacity; }
  /// Ours of an array of the table; null before enter().
  template <class Array>
  auto* own_of(Array& array) const {
    return has_place() ? &array[own_place_.load()] : nullptr;
  }

  int fd_;
  GpuProcessTable& table_;
  std::atomic<std::size_t> own_place_{GpuProcessTable::capacity};  ///< place in the table; capacity: none
  std::atomic<std::uint64_t> own_limit_{std::numeric_limits<std::uint64_t>::max()};
};

}  // namespace firebreak::softgpu
