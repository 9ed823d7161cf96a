// SPDX-License-Identifier: Apache-2.0
/// The space of queued commits' payloads: a queue of pieces. Pure.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>

namespace firebreak::journal {

/// A queue that stays within the first `warm_bytes` while little is queued, which the processor's caches
/// hold.
class PayloadSpace {
 public:
  static constexpr std::size_t warm_bytes = std::size_t{64} << 10;

  explicit PayloadSpace(std::size_t capacity) : capacity_(capacity) {}

  /// Returns where `bytes` in one piece are free, or nothing. With nothing taken, all of the capacity is.
  std::optional<std::size_t> take(std::size_t bytes);
  void give_back_oldest();
  void give_back_newest();
  std::size_t taken_bytes() const { return taken_bytes_; }

 private:
  struct Piece {
    std::size_t begin;
    std::size_t end;
  };
  std::optional<std::size_t> find(std::size_t bytes) const;

  std::size_t capacity_;
  std::size_t taken_bytes_ = 0;
  std::deque<Piece>
      taken_;  ///< a piece has at least one byte, so that oldest and newest tell full from empty
};

}  // namespace firebreak::journal
