// SPDX-License-Identifier: Apache-2.0
/// The addresses of a process's GPU address space that UVM knows: what the driver mapped, and the external
/// ranges that were made with shared/abi/uvm_ranges.h, by the process itself or by one that duplicated its
/// descriptor.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "softgpu/machine/robust_mutex.h"

namespace firebreak::softgpu {

struct AddressSpan {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  ///< one past the last byte
  bool contains(std::uint64_t address) const { return address >= begin && address < end; }
  bool overlaps(const AddressSpan& other) const { return begin < other.end && other.begin < end; }
  bool holds(const AddressSpan& other) const { return other.begin >= begin && other.end <= end; }
  bool operator==(const AddressSpan&) const = default;
};

/// Spans in no order, in shared memory. A process that dies while it changes the list leaves a span too many
/// at worst.
template <std::size_t capacity>
class SpanList {
 public:
  std::span<const AddressSpan> all() const { return std::span(spans_).first(count_); }
  /// False: no room.
  bool add(const AddressSpan& span) {
    if (count_ == capacity) return false;
    spans_[count_] = span;
    ++count_;
    return true;
  }
  void remove_inside(const AddressSpan& outer) {
    for (std::size_t at = 0; at < count_;) {
      if (!outer.holds(spans_[at])) {
        ++at;
        continue;
      }
      spans_[at] = spans_[count_ - 1];
      --count_;
    }
  }

 private:
  std::uint64_t count_ = 0;
  std::array<AddressSpan, capacity> spans_{};
};

/// Lives in shared memory, where all is zero before initialise(). Thread safe, also between processes.
/// Requests answer with NV_STATUS values.
class UvmRangeTable {
 public:
  void initialise() { mutex_.initialise(); }

  /// `managed`: the process's managed ranges, which are in the way as any other range is.
  std::uint32_t create_external(std::uint64_t base, std::uint64_t length,
                                std::span<const AddressSpan> managed);
  std::uint32_t map_sparse(std::uint64_t base, std::uint64_t length);
  std::uint32_t free(std::uint64_t base, std::uint64_t length);

  /// The driver is about to map something there. False: an external range is in the way. Of a driver that
  /// maps more ranges than fit, external ranges may overlap the rest.
  bool take(const AddressSpan& span);
  /// The driver has unmapped whatever it had in there.
  void give(const AddressSpan& span);

  /// The sparse part of an external range that holds the address.
  std::optional<AddressSpan> find_sparse(std::uint64_t address) const;

 private:
  static bool is_range(std::uint64_t base, std::uint64_t length, std::uint64_t alignment_bytes);

  mutable RobustMutex mutex_;  ///< guards the lists
  SpanList<1024> external_;
  SpanList<1024> sparse_;  ///< sparse spans, each inside one external range; they may overlap
  SpanList<4096> driver_;
  std::atomic<bool> has_sparse_;  ///< spares most lookups the lock
};

}  // namespace firebreak::softgpu
