// SPDX-License-Identifier: Apache-2.0
/// The kernel log of the software machine: a ring in shared memory. A line is posted with the time at which
/// it is due, so that it appears then even if its writer is dead by that time.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace firebreak::softgpu {

struct KmsgLine {
  std::int64_t due_ns = 0;  ///< CLOCK_MONOTONIC; readers hold the line back until then
  std::string text;         ///< without the record prefix and the newline
};

/// Lives in shared memory; all zero is the valid empty state. Any number of writers and readers; a writer
/// that dies half way leaves a hole that readers skip.
class KmsgRing {
 public:
  static constexpr std::size_t capacity = 128;
  static constexpr std::size_t text_bytes_max = 384;

  /// Longer text is cut.
  void post(std::int64_t due_ns, std::string_view text);
  /// The number that the next line will get.
  std::uint64_t next_sequence() const { return next_sequence_.load(std::memory_order_acquire); }
  /// The oldest number that may still be in the ring.
  std::uint64_t oldest_sequence() const;
  /// Empty: not written (yet), or already overwritten.
  std::optional<KmsgLine> read(std::uint64_t sequence) const;

 private:
  struct Slot {
    std::atomic<std::uint64_t> published;  ///< sequence + 1 of the line that is whole in here
    std::atomic<std::int64_t> due_ns;
    std::atomic<std::uint64_t> length_bytes;
    std::array<std::atomic<std::uint64_t>, text_bytes_max / sizeof(std::uint64_t)> words;
  };
  std::atomic<std::uint64_t> next_sequence_;
  std::array<Slot, capacity> slots_;
};

}  // namespace firebreak::softgpu
