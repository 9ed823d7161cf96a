// SPDX-License-Identifier: Apache-2.0
#include "kernels/access/decision.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "kernels/access/effects.h"
#include "kernels/access/evaluate.h"
#include "kernels/access/exact_bytes.h"

namespace firebreak::access {
namespace {

constexpr std::size_t most_boxes = 1'100;
constexpr Wide most_address = Wide{1} << 64;

using PlacedBox = DecisionWorkspace::PlacedBox;

// The range that holds the address; null: none does.
const MemoryRange* find_range(std::span<const MemoryRange> memory, std::uint64_t address) {
  auto after =
      std::upper_bound(memory.begin(), memory.end(), address,
                       [](std::uint64_t value, const MemoryRange& range) { return value < range.address; });
  if (after == memory.begin()) return nullptr;
  --after;
  return address - after->address < after->size_bytes ? &*after : nullptr;
}

Wide end_of(const MemoryRange& range) {
  return static_cast<Wide>(range.address) + static_cast<Wide>(range.size_bytes);
}

std::optional<std::uint64_t> read_pointer(const LaunchArguments& launch, std::uint64_t offset) {
  std::uint64_t value = 0;
  if (offset > launch.parameters.size() || launch.parameters.size() - offset < sizeof(value))
    return std::nullopt;
  std::memcpy(&value, launch.parameters.data() + offset, sizeof(value));
  return value;
}

class Decider {
 public:
  Decider(const KernelSummary& summary, const LaunchArguments& launch, DecisionWorkspace& workspace)
      : summary_(summary), launch_(launch), workspace_(workspace) {
    workspace_.values.begin(summary.steps.size(), summary.places.size());
  }

  Decision run() {
    if (const Decision problem = check_launch(); problem.verdict != Verdict::Idempotent) return problem;
    if (are_all_apart()) return fine();
    workspace_.reads.clear();
    workspace_.writes.clear();
    for (const bool reads : {false, true}) {
      if (reads && workspace_.writes.empty()) break;  // nothing is written: nothing can be torn
      for (std::uint32_t i = 0; i < summary_.groups.size(); ++i) {
        if ((summary_.groups[i].kind == ptx::EffectKind::Read) != reads) continue;
        const Decision problem = place(i);
        if (problem.verdict != Verdict::Idempotent) return problem;
      }
    }
    return compare();
  }

  OperationEffects effects() {
    OperationEffects found;
    found.decision = check_launch();
    if (found.decision.verdict != Verdict::Idempotent) return found;
    keeps_atomics_ = true;
    for (std::uint32_t i = 0; i < summary_.groups.size(); ++i) {
      const AccessGroup& group = summary_.groups[i];
      PlacedBox placed;
      bool happens = false;
      found.decision = locate(i, placed, happens);
      if (found.decision.verdict == Verdict::Idempotent && happens) found.decision = make_canonical(placed);
      if (found.decision.verdict != Verdict::Idempotent) return found;
      if (!happens) continue;
      if (group.kind != ptx::EffectKind::Write) found.reads.push_back(placed);
      if (group.kind != ptx::EffectKind::Read) add_write(placed, found);
    }
    condense(found.certain_writes);
    compare_order(found);
    return found;
  }

  PlacedBox predicted(std::uint32_t index, bool& happens, bool& is_known) {
    PlacedBox placed;
    happens = false;
    is_known = locate(index, placed, happens).verdict == Verdict::Idempotent;
    return placed;
  }

 private:
  static Decision fine() { return {Verdict::Idempotent, DecisionReason::None}; }
  static Decision unknown(DecisionReason reason, std::uint32_t index) {
    return {Verdict::Unknown, reason, index, index};
  }

  Decision check_launch() const {
    if (!summary_.refusal.empty()) return {Verdict::Unknown, DecisionReason::Refused};
    if (launch_.parameters.size() < summary_.parameter_bytes)
      return {Verdict::Unknown, DecisionReason::ShortParameters};
    return fine();
  }

  // Canonical addresses, in one allocation.
  struct Bytes {
    Wide begin = 0;
    Wide end = 0;
    const MemoryRange* allocation = nullptr;
  };

  // The quick proof: all accesses go to known places of known allocations, and what is read is nowhere near
  // what is written. False says nothing.
  bool are_all_apart() {
    std::array<Bytes, 16> written;  // one for each allocation
    std::size_t count = 0;
    for (const AddressProgram& program : summary_.programs) {
      Bytes bytes;
      const Covered covered = cover(program, program.writes, bytes);
      if (covered == Covered::Nothing) continue;
      if (covered == Covered::NotKnown || program.has_atomics) return false;
      std::size_t at = 0;
      while (at < count && written[at].allocation != bytes.allocation) ++at;
      if (at == written.size()) return false;
      if (at == count) written[count++] = bytes;
      written[at].begin = std::min(written[at].begin, bytes.begin);
      written[at].end = std::max(written[at].end, bytes.end);
    }
    const auto is_apart = [&](const AddressProgram& program) {
      Bytes bytes;
      const Covered covered = cover(program, program.reads, bytes);
      if (covered != Covered::Known) return covered == Covered::Nothing;
      return std::none_of(written.begin(), written.begin() + count, [&](const Bytes& write) {
        return bytes.begin < write.end && write.begin < bytes.end;
      });
    };
    return count == 0 || std::all_of(summary_.programs.begin(), summary_.programs.end(), is_apart);
  }

  enum class Covered : std::uint8_t { Nothing, Known, NotKnown };

  // Known: all of it lies in one allocation.
  Covered cover(const AddressProgram& program, const OffsetRange& offsets, Bytes& bytes) {
    if (offsets.is_empty()) return Covered::Nothing;
    if (!program.is_complete) return Covered::NotKnown;
    if (!evaluate(summary_.steps, summary_.places, program.place, launch_, workspace_.values))
      return Covered::Nothing;
    const Affine& starts = workspace_.values.values[program.result];
    if (starts.unknown != UnknownReason::None) {
      last_ = allocation_of(program.base);
      if (last_ == nullptr) return Covered::NotKnown;
      bytes = {static_cast<Wide>(last_->address), end_of(*last_), last_};
    } else {
      bytes = {starts.low() + offsets.begin, starts.high() + offsets.end, nullptr};
      if (bytes.begin < 0 || bytes.end > most_address) return Covered::NotKnown;
      const auto begin = static_cast<std::uint64_t>(bytes.begin);
      const bool is_again = last_ != nullptr && begin - last_->address < last_->size_bytes;
      if (!is_again) last_ = find_range(launch_.memory, begin);
      if (last_ == nullptr || bytes.end > end_of(*last_)) return Covered::NotKnown;
    }
    const Wide moved = static_cast<Wide>(last_->canonical_address) - static_cast<Wide>(last_->address);
    bytes = {bytes.begin + moved, bytes.end + moved, last_};
    return Covered::Known;
  }

  // Where the group goes, as the launch's own addresses.
  Decision locate(std::uint32_t index, PlacedBox& placed, bool& happens) {
    const AccessGroup& group = summary_.groups[index];
    happens = true;
    const AddressProgram& program = summary_.programs[group.program];
    if (!program.is_complete) return unknown(DecisionReason::TooComplicated, index);
    happens = evaluate(summary_.steps, summary_.places, program.place, launch_, workspace_.values);
    if (!happens) return fine();
    const Affine& starts = workspace_.values.values[program.result];
    if (group.kind == ptx::EffectKind::Atomic && !keeps_atomics_)
      return {Verdict::NotIdempotent, DecisionReason::Atomic, index, index};
    placed.group = index;
    placed.box.width_bytes = group.width_bytes;
    if (starts.unknown != UnknownReason::None) return widen(group, index, placed);
    placed.box.starts = starts;
    placed.box.starts.base += static_cast<Wide>(group.offset_bytes);
    placed.box.starts = normalise(placed.box.starts, 64, false, 0);
    if (placed.box.starts.unknown != UnknownReason::None) return widen(group, index, placed);
    return fine();
  }

  ExactPlace exact_place(const AccessGroup& group) {
    const AddressProgram& program = summary_.programs[group.program];
    ExactPlace place =
        evaluate_exactly(summary_.steps, summary_.places[program.place], program.result,
                         summary_.counted_loops, launch_, workspace_.values, workspace_.exact_values);
    place.address.base += static_cast<Wide>(group.offset_bytes);
    place.address = normalise(place.address, 64, false, first_step_variable);
    place.is_exact = place.is_exact && place.address.unknown == UnknownReason::None;
    return place;
  }

  Decision widen(const AccessGroup& group, std::uint32_t index, PlacedBox& placed) const {
    const MemoryRange* const range = allocation_of(group.base);
    if (range == nullptr) return unknown(DecisionReason::UnknownAddress, index);
    placed.is_wide = true;
    placed.box.starts = Affine::constant(static_cast<Wide>(range->address));
    placed.box.width_bytes = static_cast<Wide>(range->size_bytes);
    return fine();
  }

  // Null: it is not known.
  const MemoryRange* allocation_of(const AddressBase& base) const {
    if (base.kind == BaseKind::Variable && base.value < launch_.variable_addresses.size())
      return find_range(launch_.memory, launch_.variable_addresses[base.value]);
    if (base.kind != BaseKind::Parameter) return nullptr;
    const MemoryRange* const range = range_of_parameter(base.value);
    const MemoryRange* const second = base.has_second ? range_of_parameter(base.second_value) : nullptr;
    if (range != nullptr && second != nullptr) return nullptr;  // which of them is the pointer?
    return second != nullptr ? second : range;
  }

  const MemoryRange* range_of_parameter(std::uint64_t offset) const {
    const std::optional<std::uint64_t> pointer = read_pointer(launch_, offset);
    return pointer ? find_range(launch_.memory, *pointer) : nullptr;
  }

  Decision place(std::uint32_t index) {
    PlacedBox placed;
    bool happens = false;
    Decision problem = locate(index, placed, happens);
    if (problem.verdict != Verdict::Idempotent || !happens) return problem;
    problem = make_canonical(placed);
    if (problem.verdict != Verdict::Idempotent) return problem;
    placed.begin = placed.box.begin();
    placed.end = placed.box.end();
    const bool reads = summary_.groups[index].kind == ptx::EffectKind::Read;
    (reads ? workspace_.reads : workspace_.writes).push_back(placed);
    return fine();
  }

  bool is_inside(const StridedBox& box) const {
    const MemoryRange* range = find_range(launch_.memory, static_cast<std::uint64_t>(box.begin()));
    return range != nullptr && box.end() <= end_of(*range);
  }

  // Two addresses of one memory become one.
  Decision make_canonical(PlacedBox& placed) const {
    StridedBox& box = placed.box;
    const MemoryRange* range = find_range(launch_.memory, static_cast<std::uint64_t>(box.begin()));
    if (range != nullptr && box.end() <= end_of(*range)) {
      box.starts.base += static_cast<Wide>(range->canonical_address) - static_cast<Wide>(range->address);
      return fine();
    }
    bool touches = false;
    for (const MemoryRange& each : launch_.memory) {
      if (static_cast<Wide>(each.address) >= box.end() || end_of(each) <= box.begin()) continue;
      touches = true;
      if (each.canonical_address != each.address) return unknown(DecisionReason::AliasedMemory, placed.group);
    }
    return touches ? fine() : unknown(DecisionReason::OutsideMemory, placed.group);
  }

  Decision compare() const {
    Decision doubt = fine();
    if (workspace_.writes.empty()) return doubt;
    Wide begin = workspace_.writes.front().begin;
    Wide end = workspace_.writes.front().end;
    for (const PlacedBox& write : workspace_.writes) {
      begin = std::min(begin, write.begin);
      end = std::max(end, write.end);
    }
    for (const PlacedBox& read : workspace_.reads) {
      if (read.end <= begin || end <= read.begin) continue;
      for (const PlacedBox& write : workspace_.writes) {
        if (read.end <= write.begin || write.end <= read.begin || !may_meet(write.box, read.box)) continue;
        if (!write.is_wide && !read.is_wide)
          return {Verdict::NotIdempotent, DecisionReason::Overlap, write.group, read.group};
        doubt = {Verdict::Unknown, DecisionReason::WideOverlap, write.group, read.group};
      }
    }
    return doubt;
  }

  // What the group certainly writes, in which order ever its threads come.
  void add_write(PlacedBox placed, OperationEffects& found) {
    const AccessGroup& group = summary_.groups[placed.group];
    bool is_one_to_one = false;
    if (group.is_certain) {
      const ExactPlace place = exact_place(group);
      placed.is_fixed = place.is_exact;
      ExactBytes exact = find_exact_bytes(place, group.width_bytes, launch_);
      is_one_to_one = exact.is_one_to_one && group.kind == ptx::EffectKind::Write;
      for (const StridedBox& box : exact.boxes) {
        PlacedBox one{box, placed.group};
        if (group.is_store && is_inside(box) && make_canonical(one).verdict == Verdict::Idempotent)
          found.certain_writes.push_back(one.box);
      }
    }
    found.writes.push_back(placed);
    one_to_one_.push_back(is_one_to_one);
  }

  // Each thread has an address of its own, whatever its conditions are.
  bool is_own(const AccessGroup& group) {
    if (!group.is_certain) return false;
    ExactPlace place = exact_place(group);
    place.constraint_count = 0;
    return find_exact_bytes(place, group.width_bytes, launch_).is_one_to_one;
  }

  void compare_order(OperationEffects& found) {
    constexpr std::size_t most_pairs = 20'000;
    const std::size_t pairs = found.writes.size() * (found.reads.size() + found.writes.size());
    found.may_race = pairs > most_pairs || summary_.has_order_in_block;
    found.values_may_race = found.may_race;
    for (std::size_t i = 0; i < found.writes.size() && !found.may_race; ++i) {
      const AccessGroup& write = summary_.groups[found.writes[i].group];
      found.may_race = write.kind == ptx::EffectKind::Atomic;
      std::optional<bool> own;
      // The two meet only in one thread.
      const auto is_harmless = [&](const PlacedBox& other) {
        if (!may_meet(found.writes[i].box, other.box)) return true;
        const AccessGroup& group = summary_.groups[other.group];
        if (group.address != write.address || group.width_bytes != write.width_bytes) return false;
        if (!own) own = is_own(write);
        return *own;
      };
      found.may_race = found.may_race || !std::all_of(found.reads.begin(), found.reads.end(), is_harmless);
      found.values_may_race =
          found.values_may_race ||
          !std::all_of(found.writes.begin(), found.writes.begin() + static_cast<std::ptrdiff_t>(i),
                       is_harmless);
      found.values_may_race = found.values_may_race || !one_to_one_[i];
    }
    // What a thread has written itself it reads back only where nobody else writes it.
    found.may_race = found.may_race || (found.values_may_race && summary_.reads_own_writes);
    found.values_may_race = found.values_may_race || found.may_race;
  }

  const KernelSummary& summary_;
  const LaunchArguments& launch_;
  DecisionWorkspace& workspace_;
  const MemoryRange* last_ = nullptr;  ///< where cover() has found something
  bool keeps_atomics_ = false;
  std::vector<bool> one_to_one_;  ///< by OperationEffects::writes: no two threads write one byte by it
};

}  // namespace

DecisionWorkspace::DecisionWorkspace() {
  reads.reserve(most_boxes);
  writes.reserve(most_boxes);
}

Decision decide(const KernelSummary& summary, const LaunchArguments& launch, DecisionWorkspace& workspace) {
  return Decider(summary, launch, workspace).run();
}

OperationEffects find_effects(const KernelSummary& summary, const LaunchArguments& launch,
                              DecisionWorkspace& workspace) {
  return Decider(summary, launch, workspace).effects();
}

PredictedAccess predict(const KernelSummary& summary, std::size_t group, const LaunchArguments& launch,
                        DecisionWorkspace& workspace) {
  PredictedAccess result;
  const PlacedBox placed = Decider(summary, launch, workspace)
                               .predicted(static_cast<std::uint32_t>(group), result.happens, result.is_known);
  result.box = placed.box;
  result.is_wide = placed.is_wide;
  return result;
}

bool allows(const PredictedAccess& predicted, std::uint64_t address, std::uint64_t size_bytes) {
  if (!predicted.happens || !predicted.is_known) return predicted.happens;
  const auto start = static_cast<Wide>(address);
  const StridedBox& box = predicted.box;
  if (start < box.begin() || start + static_cast<Wide>(size_bytes) > box.end()) return false;
  const Wide step = box.starts.step();
  return predicted.is_wide || step == 0 ? true : (start - box.starts.base) % step == 0;
}

}  // namespace firebreak::access
