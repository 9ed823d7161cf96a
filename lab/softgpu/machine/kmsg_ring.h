// SPDX-License-Identifier: Apache-2.0
/// The kernel log of the software machine: a ring in shared memory. A line is posted with the time at which
/// it is due, so that it appears then even if its writer is dead by that time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "softgpu/machine/record_ring.h"

namespace firebreak::softgpu {

struct KmsgLine {
  std::int64_t due_ns = 0;  ///< CLOCK_MONOTONIC; readers hold the line back until then
  std::string text;         ///< text without the record prefix and the newline
};

/// Lives in shared memory; all zero is the valid empty state. Any number of writers and readers.
class KmsgRing {
 public:
  static constexpr std::size_t capacity = 128;
  static constexpr std::size_t text_bytes_max = 384;

  /// Longer text is cut.
  void post(std::int64_t due_ns, std::string_view text);
  std::uint64_t next_sequence() const { return ring_.next_sequence(); }
  std::uint64_t oldest_sequence() const { return ring_.oldest_sequence(); }
  /// Empty: not written (yet), or already overwritten.
  std::optional<KmsgLine> read(std::uint64_t sequence) const;

 private:
  struct Record {
    std::int64_t due_ns = 0;
    std::uint64_t length_bytes = 0;
    std::array<char, text_bytes_max> text{};
  };
  RecordRing<Record, capacity> ring_;
};

}  // namespace firebreak::softgpu
