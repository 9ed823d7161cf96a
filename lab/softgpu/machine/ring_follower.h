// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace firebreak::softgpu {

/// One reader's way through a ring of records: in their order, past what was overwritten before it came, and
/// past what a writer that died left half written.
class RingFollower {
 public:
  /// A record that is not whole after that long had a writer that died.
  static constexpr std::int64_t hole_patience_ns = 20'000'000;

  explicit RingFollower(std::uint64_t next_sequence) : next_sequence_(next_sequence) {}

  /// Gives `take` each record that is new and whole by now.
  template <class Ring, class Take>
  void collect(const Ring& ring, std::int64_t now_ns, Take take) {
    while (next_sequence_ < ring.next_sequence()) {
      next_sequence_ = std::max(next_sequence_, ring.oldest_sequence());
      if (auto record = ring.read(next_sequence_)) {
        take(std::move(*record));
      } else if (hole_since_ns_ == 0) {
        hole_since_ns_ = now_ns;
        return;
      } else if (now_ns - hole_since_ns_ < hole_patience_ns) {
        return;
      }
      hole_since_ns_ = 0;
      ++next_sequence_;
    }
  }

  /// How long to sleep at most unless somebody wakes us: not longer than `otherwise`.
  std::int64_t sleep_ns(std::int64_t otherwise) const {
    return hole_since_ns_ == 0 ? otherwise : std::min(otherwise, hole_patience_ns);
  }

 private:
  std::uint64_t next_sequence_;
  std::int64_t hole_since_ns_ = 0;  ///< a record that was begun and is not whole
};

}  // namespace firebreak::softgpu
