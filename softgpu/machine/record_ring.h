// SPDX-License-Identifier: Apache-2.0
/// A ring of records in shared memory: any number of writers and readers, none of which waits for another.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>

namespace firebreak::softgpu {

/// All zero is the valid empty state. A writer that dies half way leaves a hole that readers skip.
template <class Record, std::size_t capacity_records>
class RecordRing {
 public:
  static constexpr std::size_t capacity = capacity_records;

  void post(const Record& record) {
    const std::uint64_t sequence = next_sequence_.fetch_add(1, std::memory_order_acq_rel);
    Slot& slot = slots_[sequence % capacity];
    slot.published.store(0, std::memory_order_release);
    for (std::size_t at = 0; at < word_count; ++at) {
      std::uint64_t word = 0;
      std::memcpy(&word, reinterpret_cast<const std::byte*>(&record) + at * sizeof(word), sizeof(word));
      slot.words[at].store(word, std::memory_order_release);
    }
    slot.published.store(sequence + 1, std::memory_order_release);
  }

  /// The number that the next record will get.
  std::uint64_t next_sequence() const { return next_sequence_.load(std::memory_order_acquire); }

  /// The oldest number that may still be in the ring.
  std::uint64_t oldest_sequence() const {
    const std::uint64_t next = next_sequence();
    return next > capacity ? next - capacity : 0;
  }

  /// Empty: not written (yet), or already overwritten.
  std::optional<Record> read(std::uint64_t sequence) const {
    const Slot& slot = slots_[sequence % capacity];
    if (slot.published.load(std::memory_order_acquire) != sequence + 1) return std::nullopt;
    Record record;
    for (std::size_t at = 0; at < word_count; ++at) {
      const std::uint64_t word = slot.words[at].load(std::memory_order_acquire);
      std::memcpy(reinterpret_cast<std::byte*>(&record) + at * sizeof(word), &word, sizeof(word));
    }
    if (slot.published.load(std::memory_order_acquire) != sequence + 1) return std::nullopt;
    return record;
  }

 private:
  static_assert(std::is_trivially_copyable_v<Record> && sizeof(Record) % sizeof(std::uint64_t) == 0);
  static constexpr std::size_t word_count = sizeof(Record) / sizeof(std::uint64_t);
  struct Slot {
    std::atomic<std::uint64_t> published;  ///< sequence + 1 of the record that is whole in here
    std::array<std::atomic<std::uint64_t>, word_count> words;
  };
  std::atomic<std::uint64_t> next_sequence_;
  std::array<Slot, capacity> slots_;
};

}  // namespace firebreak::softgpu
