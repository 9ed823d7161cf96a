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

/// A ring whose valid empty state is all zero. A writer that dies half way leaves a hole that readers skip;
/// one that is so slow that the others come around to its slot may spoil theirs, which readers know by its
/// checksum and skip too.
template <class Record, std::size_t capacity_records>
class RecordRing {
 public:
  static constexpr std::size_t capacity = capacity_records;

  void post(const Record& record) {
    const std::uint64_t sequence = next_sequence_.fetch_add(1, std::memory_order_acq_rel);
    Slot& slot = slots_[sequence % capacity];
    slot.published.store(0, std::memory_order_release);
    Checksum checksum(sequence);
    for (std::size_t at = 0; at < word_count; ++at) {
      std::uint64_t word = 0;
      std::memcpy(&word, reinterpret_cast<const std::byte*>(&record) + at * sizeof(word), sizeof(word));
      checksum.add(word);
      slot.words[at].store(word, std::memory_order_release);
    }
    slot.checksum.store(checksum.value(), std::memory_order_release);
    slot.published.store(sequence + 1, std::memory_order_release);
  }

  /// The number that the next record will get.
  std::uint64_t next_sequence() const { return next_sequence_.load(std::memory_order_acquire); }

  /// The oldest number that may still be in the ring.
  std::uint64_t oldest_sequence() const {
    const std::uint64_t next = next_sequence();
    return next > capacity ? next - capacity : 0;
  }

  /// Empty: not written (yet), spoilt, or already overwritten.
  std::optional<Record> read(std::uint64_t sequence) const {
    const Slot& slot = slots_[sequence % capacity];
    if (slot.published.load(std::memory_order_acquire) != sequence + 1) return std::nullopt;
    Record record;
    Checksum checksum(sequence);
    for (std::size_t at = 0; at < word_count; ++at) {
      const std::uint64_t word = slot.words[at].load(std::memory_order_acquire);
      std::memcpy(reinterpret_cast<std::byte*>(&record) + at * sizeof(word), &word, sizeof(word));
      checksum.add(word);
    }
    if (slot.checksum.load(std::memory_order_acquire) != checksum.value()) return std::nullopt;
    if (slot.published.load(std::memory_order_acquire) != sequence + 1) return std::nullopt;
    return record;
  }

 private:
  static_assert(std::is_trivially_copyable_v<Record> && sizeof(Record) % sizeof(std::uint64_t) == 0);
  static constexpr std::size_t word_count = sizeof(Record) / sizeof(std::uint64_t);

  /// The checksum of a record's words and its number.
  class Checksum {
   public:
    explicit Checksum(std::uint64_t sequence) { add(sequence); }
    void add(std::uint64_t word) {
      value_ = (value_ ^ word) * 0x9e37'79b9'7f4a'7c15;
      value_ ^= value_ >> 32;
    }
    std::uint64_t value() const { return value_; }

   private:
    std::uint64_t value_ = 1;
  };

  struct Slot {
    std::atomic<std::uint64_t> published;  ///< sequence + 1 of the record that is whole in here
    std::array<std::atomic<std::uint64_t>, word_count> words;
    std::atomic<std::uint64_t> checksum;
  };
  std::atomic<std::uint64_t> next_sequence_;
  std::array<Slot, capacity> slots_;
};

}  // namespace firebreak::softgpu
