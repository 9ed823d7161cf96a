// SPDX-License-Identifier: Apache-2.0
#include "kernels/regions/region_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernels/access/overlap.h"

namespace firebreak::regions {
namespace {

using access::StridedBox;
using access::Wide;

constexpr std::size_t most_boxes = 4'096;
// Largest number of boxes that are compared in a region, after a fault. One takes some 300 ns.
constexpr std::uint64_t most_comparisons = 4'000'000;
constexpr std::uint64_t far_ones_of_a_comparison = 64;  // number of boxes that are seen to be far apart
constexpr Wide most_rows = 512;                  // largest number of rows of one box that is written out
constexpr std::size_t most_rows_of_all = 2'048;  // and of all boxes of an operation

ByteRange hull_of(const StridedBox& box) {
  constexpr Wide last = ~std::uint64_t{0};
  return {static_cast<std::uint64_t>(std::clamp<Wide>(box.begin(), 0, last)),
          static_cast<std::uint64_t>(std::clamp<Wide>(box.end(), 0, last))};
}

StridedBox box_of(ByteRange range) {
  StridedBox box;
  box.starts = access::Affine::constant(static_cast<Wide>(range.begin));
  box.width_bytes = static_cast<Wide>(range.end) - static_cast<Wide>(range.begin);
  return box;
}

bool may_meet(const StridedBox& box, ByteRange range) { return access::may_meet(box, box_of(range)); }

// Its rows. A box has none that has very many, by itself or with those before: it is not shown that they are
// written.
void add_rows(const StridedBox& box, ByteRanges& ranges) {
  Wide count = 1;
  for (std::size_t i = 0; i < box.starts.axis_count; ++i) {
    if (box.starts.axes[i].last >= most_rows) return;
    count *= box.starts.axes[i].last + 1;
  }
  if (count > most_rows || ranges.ranges().size() + static_cast<std::size_t>(count) > most_rows_of_all)
    return;
  std::vector<Wide> starts{box.starts.base};
  for (std::size_t i = 0; i < box.starts.axis_count; ++i) {
    const std::size_t before = starts.size();
    for (Wide k = 1; k <= box.starts.axes[i].last; ++k)
      for (std::size_t at = 0; at < before; ++at)
        starts.push_back(starts[at] + box.starts.axes[i].stride * k);
  }
  for (const Wide start : starts)
    ranges.add({static_cast<std::uint64_t>(start), static_cast<std::uint64_t>(start + box.width_bytes)});
}

// Returns the part of the box that is in none of the sets, as far as ranges say.
ByteRanges left_of(const StridedBox& box, std::initializer_list<const ByteRanges*> sets,
                   std::uint64_t& comparisons) {
  ByteRanges left;
  left.add(hull_of(box));
  for (const ByteRanges* set : sets) left.remove(*set);
  ByteRanges met;
  comparisons += left.ranges().size();
  for (const ByteRange& range : left.ranges())
    if (may_meet(box, range)) met.add(range);
  return met;
}

// Bytes outside of memory are touched by nobody.
ByteRanges inside(const ByteRanges& bytes, std::span<const access::MemoryRange> memory) {
  ByteRanges result;
  for (const access::MemoryRange& range : memory)
    result.add(bytes.common_with({range.canonical_address, range.canonical_address + range.size_bytes}));
  return result;
}

}  // namespace

// Saved bytes do not matter: they are put back, so a torn run leaves them as they were.
void RegionBuilder::collect_reads(const access::OperationEffects& effects, Fit& fit) const {
  for (const auto& placed : effects.reads) {
    Read read{placed.box, hull_of(placed.box), left_of(placed.box, {&certain_, &saved_}, fit.comparisons),
              next_};
    if (!read.exposed.empty()) fit.reads.push_back(std::move(read));
  }
}

void RegionBuilder::collect_overwritten(const access::OperationEffects& effects, Fit& fit) const {
  const auto collect = [&](const Read& read, const StridedBox& write, const ByteRange& written) {
    const bool is_far = read.hull.end <= written.begin || written.end <= read.hull.begin;
    if (is_far || comparisons_ + fit.comparisons > most_comparisons) return;
    ++fit.comparisons;
    if (!access::may_meet(write, read.box)) return;
    fit.comparisons += read.exposed.ranges().size();
    for (const ByteRange& range : read.exposed.ranges()) {
      const ByteRange both{std::max(range.begin, written.begin), std::min(range.end, written.end)};
      if (both.begin >= both.end || !may_meet(write, both) || !may_meet(read.box, both)) continue;
      if (fit.to_save.empty()) {
        fit.bytes = both;
        fit.other = read.operation;
      }
      fit.to_save.add(both);
    }
  };
  for (const auto& write : effects.writes) {
    const ByteRange written = hull_of(write.box);
    if (comparisons_ + fit.comparisons > most_comparisons) return;
    fit.comparisons += (reads_.size() + fit.reads.size()) / far_ones_of_a_comparison;
    for (const Read& read : reads_) collect(read, write.box, written);
    for (const Read& read : fit.reads) collect(read, write.box, written);
  }
}

// The order of threads may choose what is written: a torn run then writes what a whole one does not. That is
// harmless only where the region writes it in any case.
void RegionBuilder::collect_by_order(const access::OperationEffects& effects, Fit& fit) const {
  fit.is_by_order =
      effects.may_race || std::any_of(effects.reads.begin(), effects.reads.end(), [this](const auto& read) {
        return !by_order_.common_with(hull_of(read.box)).empty();
      });
  if (!fit.is_by_order) return;
  ByteRanges own;
  for (const StridedBox& box : effects.certain_writes) add_rows(box, own);
  for (const auto& write : effects.writes) {
    if (write.is_fixed) continue;
    const ByteRanges stays = left_of(write.box, {&certain_, &own, &saved_}, fit.comparisons);
    if (stays.empty()) continue;
    if (fit.to_save.empty()) {
      fit.reason = BreakReason::ByOrder;
      fit.bytes = stays.ranges().front();
      fit.other = next_;
    }
    fit.to_save.add(stays);
  }
}

// Saves may include what an operation of the region has written meanwhile: nobody read it before that, and
// the same is written there again.
void RegionBuilder::check_saving(std::span<const access::MemoryRange> memory, Fit& fit) const {
  const BreakReason reason = std::exchange(fit.reason, BreakReason::None);
  fit.to_save.remove(saved_);
  fit.to_save = inside(fit.to_save, memory);
  if (fit.to_save.empty() || saved_.size_bytes() + fit.to_save.size_bytes() <= most_saved_bytes_) return;
  fit.reason = reason == BreakReason::None ? BreakReason::Overwrites : reason;
}

bool RegionBuilder::has_many_ranges() const {
  return certain_.ranges().size() + saved_.ranges().size() + by_order_.ranges().size() > most_boxes;
}

RegionBuilder::Fit RegionBuilder::fit(const access::OperationEffects& effects,
                                      std::span<const access::MemoryRange> memory) const {
  Fit fit;
  fit.other = next_;
  if (effects.decision.verdict == access::Verdict::Unknown) {
    fit.reason = BreakReason::Unknown;
  } else if (effects.writes.empty()) {
    // Whatever it reads, it does nothing.
  } else if (reads_.size() + effects.reads.size() > most_boxes || has_many_ranges()) {
    fit.reason = BreakReason::TooLarge;
  } else {
    collect_reads(effects, fit);
    collect_overwritten(effects, fit);
    collect_by_order(effects, fit);
    check_saving(memory, fit);
    if (comparisons_ + fit.comparisons > most_comparisons) fit.reason = BreakReason::TooLarge;
  }
  return fit;
}

void RegionBuilder::take(const access::OperationEffects& effects, Fit fit) {
  is_first_ = false;
  if (effects.writes.empty()) return;
  comparisons_ += fit.comparisons;
  saved_.add(fit.to_save);
  for (Read& read : fit.reads) reads_.push_back(std::move(read));
  ByteRanges own;
  for (const StridedBox& box : effects.certain_writes) add_rows(box, own);
  certain_.add(own);
  const bool is_by_order = fit.is_by_order || effects.values_may_race;
  if (!is_by_order) by_order_.remove(own);
  if (!is_by_order) return;
  for (const auto& write : effects.writes) by_order_.add(hull_of(write.box));
}

void RegionBuilder::complete() {
  is_first_ = true;
  reads_.clear();
  certain_.clear();
  saved_.clear();
  by_order_.clear();
  comparisons_ = 0;
}

RegionAnswer RegionBuilder::add(const access::OperationEffects& effects,
                                std::span<const access::MemoryRange> memory) {
  RegionAnswer answer;
  Fit found = fit(effects, memory);
  answer.bytes = found.bytes;
  answer.other = found.other;
  answer.reason = is_first_ ? BreakReason::First : found.reason;
  if (found.reason != BreakReason::None && !is_first_) {
    complete();
    found = fit(effects, memory);
  }
  if (found.reason != BreakReason::None) {
    answer.placement = RegionPlace::Alone;
    answer.alone_reason = found.reason;
    complete();
  } else {
    answer.placement = answer.reason == BreakReason::None ? RegionPlace::Continues : RegionPlace::Begins;
    answer.save_before = found.to_save.ranges();
    take(effects, std::move(found));
  }
  ++next_;
  return answer;
}

std::string describe(BreakReason reason, const RegionAnswer& answer) {
  const std::string where = fmt::format("0x{:x}-0x{:x}", answer.bytes.begin, answer.bytes.end);
  switch (reason) {
    case BreakReason::None:
    case BreakReason::First:
      return "";
    case BreakReason::Unknown:
      return "nothing is known of what it reads and writes";
    case BreakReason::Overwrites:
      return fmt::format("it may write what operation {} has read: {}", answer.other, where);
    case BreakReason::ByOrder:
      return fmt::format("where it writes depends on the order of its threads: {}", where);
    case BreakReason::TooLarge:
      return "the region has become too large";
  }
  return "";
}

}  // namespace firebreak::regions
