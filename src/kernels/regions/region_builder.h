// SPDX-License-Identifier: Apache-2.0
/// Sequences of launches, copies and fills that may be done again as a whole after a fault tore them
/// somewhere. Pure.
///
/// Such a sequence is a region: what an operation of it reads, before one before it has certainly written
/// that, neither it nor one after it writes; or it was saved before. Then a torn run leaves what the region
/// reads. What a torn run may have written besides is written again: operations write where they did before,
/// unless that depends on the order of threads, which is followed (access::OperationEffects::may_race).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/access/effects.h"
#include "kernels/access/launch.h"
#include "kernels/regions/byte_ranges.h"

namespace firebreak::regions {

enum class RegionPlace : std::uint8_t {
  Continues,  ///< the operation is in the region of the one before
  Begins,     ///< the operation begins a region: all before has to have completed, known by a marker
  /// The operation cannot be done again: all before has to have completed, and a region begins after it.
  Alone,
};

enum class BreakReason : std::uint8_t {
  None,
  First,       ///< nothing is before it, or what cannot be done again
  Unknown,     ///< nothing is known of it
  Overwrites,  ///< the operation may write what one of the region, or it itself, has read
  ByOrder,     ///< the order of threads decides where it writes: what a torn run wrote may stay
  TooLarge,    ///< the region has too many operations that matter
};

struct RegionAnswer {
  RegionPlace placement = RegionPlace::Continues;
  BreakReason reason = BreakReason::None;        ///< why it does not continue the region before it
  ByteRange bytes;                               ///< the first that are the reason
  std::uint64_t other = 0;                       ///< the operation that read these, by its number
  BreakReason alone_reason = BreakReason::None;  ///< why it is alone
  /// Ranges to copy elsewhere, in stream order, after all operations before it and before it. They are copied
  /// back before the region is done again, if that copy had completed: otherwise these bytes are as they
  /// were.
  std::vector<ByteRange> save_before;
};

/// One sequence, operation by operation, in the order in which they are done again. Where several streams
/// work at once, the caller chooses an order that their events allow.
class RegionBuilder {
 public:
  /// Makes a builder that saves at most so many bytes in one region.
  explicit RegionBuilder(std::uint64_t most_saved_bytes) : most_saved_bytes_(most_saved_bytes) {}

  /// The next operation; they are numbered from 0. `memory` as in access::LaunchArguments.
  RegionAnswer add(const access::OperationEffects& effects, std::span<const access::MemoryRange> memory);
  /// Notes that all that was added has completed: a region begins with the next operation.
  void complete();

  /// True when values in the current region depend on the order of threads. Doing it again in another order
  /// may then give another outcome, as another run would have.
  bool depends_on_order() const { return !by_order_.empty(); }
  std::uint64_t saved_bytes() const { return saved_.size_bytes(); }

 private:
  struct Read {
    access::StridedBox box;
    ByteRange hull;
    ByteRanges exposed;  ///< part that nobody in the region had certainly written before
    std::uint64_t operation = 0;
  };
  struct Fit {
    BreakReason reason = BreakReason::None;  ///< reason other than None: it does not fit
    ByteRange bytes;
    std::uint64_t other = 0;
    ByteRanges to_save;
    std::vector<Read> reads;
    bool is_by_order = false;
    std::uint64_t comparisons = 0;
  };

  bool has_many_ranges() const;
  Fit fit(const access::OperationEffects& effects, std::span<const access::MemoryRange> memory) const;
  void collect_reads(const access::OperationEffects& effects, Fit& fit) const;
  void collect_overwritten(const access::OperationEffects& effects, Fit& fit) const;
  void collect_by_order(const access::OperationEffects& effects, Fit& fit) const;
  void check_saving(std::span<const access::MemoryRange> memory, Fit& fit) const;
  void take(const access::OperationEffects& effects, Fit fit);

  std::uint64_t most_saved_bytes_;
  std::uint64_t next_ = 0;
  bool is_first_ = true;  ///< true for the first operation of a region
  std::vector<Read> reads_;
  ByteRanges certain_;             ///< written in this region for certain
  ByteRanges saved_;               ///< put back before the region is done again
  ByteRanges by_order_;            ///< may hold what depends on the order of threads
  std::uint64_t comparisons_ = 0;  ///< comparisons that it has cost
};

/// "it may write what operation 3 has read: 0x7000-0x7040". Empty for None and First.
std::string describe(BreakReason reason, const RegionAnswer& answer);

}  // namespace firebreak::regions
