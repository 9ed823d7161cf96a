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
// A pointer that lies no further from the edge of an allocation may have been meant for what is behind that
// edge: C++ allows one behind the last element, and arrays that count from one begin an element early.
constexpr std::uint64_t edge_bytes = 256;
// A number that lies no further from an allocation counts as a pointer to it.
constexpr std::uint64_t near_bytes = 4'096;
constexpr Wide most_address = Wide{1} << 64;

// Largest cost of an answer, in steps of some 15 ns: before each launch, and once after a fault.
constexpr std::uint32_t most_steps_of_decision = 3'000;
constexpr std::uint32_t most_steps_of_effects = 1'000'000;
constexpr std::uint32_t steps_of_a_comparison = 4;  // cost of two boxes that overlap
constexpr std::size_t pairs_of_a_step = 8;          // number of pairs that do not overlap, a step
constexpr std::size_t numbers_of_a_step = 8;        // number of numbers that may be pointers, a step

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
  Decider(const KernelSummary& summary, const LaunchArguments& launch, DecisionWorkspace& workspace,
          std::uint32_t budget_steps)
      : summary_(summary), launch_(launch), workspace_(workspace) {
    workspace_.values.begin(summary.steps.size(), summary.places.size(), budget_steps);
  }

  Decision run() {
    const Decision found = compare_all();
    return found.verdict == Verdict::Idempotent ? check_order() : found;
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
      found.may_race = found.may_race || (group.kind != ptx::EffectKind::Read && group.by_order);
    }
    found.decision = add_constants(found.writes, found.reads);
    if (found.decision.verdict != Verdict::Idempotent) return found;
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
  Decision compare_all() {
    if (const Decision problem = check_launch(); problem.verdict != Verdict::Idempotent) return problem;
    if (!summary_.reads_constants && are_all_apart()) return fine();
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
    const Decision problem = add_constants(workspace_.writes, workspace_.reads);
    return problem.verdict == Verdict::Idempotent ? compare() : problem;
  }

  static Decision fine() { return {Verdict::Idempotent, DecisionReason::None}; }
  static Decision unknown(DecisionReason reason, std::uint32_t index) {
    return {Verdict::Unknown, reason, index, index};
  }

  Decision check_launch() {
    if (!summary_.refusal.empty()) return {Verdict::Unknown, DecisionReason::Refused};
    if (launch_.parameters.size() < summary_.parameter_bytes)
      return {Verdict::Unknown, DecisionReason::ShortParameters};
    if (has_pointers(summary_.own_memory)) return {Verdict::Unknown, DecisionReason::OwnMemory};
    return fine();
  }

  // Checks the order; what a launch reads and writes besides is apart by now. A torn run may have written
  // elsewhere than the next one, if the order of threads chooses where.
  Decision check_order() {
    bool is_by_own = false;
    for (std::uint32_t i = 0; i < summary_.groups.size(); ++i) {
      const AccessGroup& group = summary_.groups[i];
      if (group.kind == ptx::EffectKind::Read || (!group.by_order && !group.by_own)) continue;
      if (!evaluate(summary_.steps, summary_.places, summary_.programs[group.program].place, launch_,
                    workspace_.values))
        continue;
      if (workspace_.values.is_spent()) return unknown(DecisionReason::TooComplicated, i);
      if (group.by_order) return unknown(DecisionReason::ByOrder, i);
      is_by_own = true;
    }
    if (!is_by_own) return fine();
    const OperationEffects found = effects();
    if (found.decision.verdict != Verdict::Idempotent) return found.decision;
    for (const PlacedBox& write : found.writes)
      if (summary_.groups[write.group].is_read_back && !is_of_one_thread(write, found.writes))
        return unknown(DecisionReason::ByOrder, write.group);
    return fine();
  }

  // True when no other thread does what a thread writes there.
  bool is_of_one_thread(const PlacedBox& write, const std::vector<PlacedBox>& writes) {
    const AccessGroup& group = summary_.groups[write.group];
    return is_own(group) && std::all_of(writes.begin(), writes.end(), [&](const PlacedBox& other) {
             return !may_meet(write.box, other.box) ||
                    meet_in_one_thread(group, summary_.groups[other.group]);
           });
  }

  // True when two accesses of one byte, one of each, are one thread's. The same address may come from a loop
  // and from behind it, where its counter has gone on to what is another thread's.
  bool meet_in_one_thread(const AccessGroup& a, const AccessGroup& b) {
    return a.address == b.address && a.width_bytes == b.width_bytes && is_own(a) && is_own(b);
  }

  // Adds what is read in constant memory. Where that lies is not always known; then it is none of the
  // launch's memory, and what is written has to be shown to stay in that.
  Decision add_constants(std::vector<PlacedBox>& writes, std::vector<PlacedBox>& reads) const {
    for (const ConstantVariable& constant : summary_.constants) {
      const std::uint64_t address =
          constant.index < launch_.variable_addresses.size() ? launch_.variable_addresses[constant.index] : 0;
      if (address == 0) continue;
      PlacedBox read;
      read.group = constant_group;
      read.box.starts = Affine::constant(static_cast<Wide>(address));
      read.box.width_bytes = static_cast<Wide>(constant.size_bytes);
      if (const MemoryRange* const range = find_range(launch_.memory, address))
        read.box.starts.base +=
            static_cast<Wide>(range->canonical_address) - static_cast<Wide>(range->address);
      read.begin = read.box.begin();
      read.end = read.box.end();
      reads.push_back(read);
    }
    if (!summary_.reads_constants) return fine();
    for (const PlacedBox& write : writes)
      if (!is_inside_canonical(write.box)) return unknown(DecisionReason::Constants, write.group);
    return fine();
  }

  bool is_inside_canonical(const StridedBox& box) const {
    return std::any_of(launch_.memory.begin(), launch_.memory.end(), [&](const MemoryRange& range) {
      const Wide begin = static_cast<Wide>(range.canonical_address);
      return begin <= box.begin() && box.end() <= begin + static_cast<Wide>(range.size_bytes);
    });
  }

  // One of these words points to the launch's memory, or near it.
  bool has_pointers(const ValueOrigins& origins) {
    if (origins.has_address) return true;
    if (!origins.is_any)
      return std::any_of(origins.words.begin(), origins.words.begin() + origins.word_count,
                         [this](std::uint64_t word) { return points(word); });
    if (any_points_) return *any_points_;
    any_points_ = false;
    for (std::uint64_t word = 0; word * ValueOrigins::word_bytes < summary_.parameter_bytes && !*any_points_;
         ++word)
      any_points_ = points(word);
    return *any_points_;
  }

  // True, too, where the answer would cost too much.
  bool points(std::uint64_t word) {
    const auto [begin, end] = bytes_of_pointers(summary_, word);
    workspace_.values.take(1 + static_cast<std::uint32_t>((end - begin) / numbers_of_a_step));
    if (workspace_.values.is_spent()) return true;
    for (std::uint64_t at = begin; at + ValueOrigins::word_bytes <= end; ++at)
      if (is_near_memory(read_pointer(launch_, at).value_or(0))) return true;
    return false;
  }

  bool is_near_memory(std::uint64_t value) const {
    const std::uint64_t end = value + std::min(near_bytes, ~value);
    if (launch_.memory.empty() || end < launch_.memory.front().address) return false;
    auto after = std::upper_bound(
        launch_.memory.begin(), launch_.memory.end(), end,
        [](std::uint64_t address, const MemoryRange& range) { return address < range.address; });
    if (after == launch_.memory.begin()) return false;
    --after;
    return value < after->address || value - after->address <= after->size_bytes + near_bytes;
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
    if (workspace_.values.is_spent()) return Covered::NotKnown;
    const Affine& starts = workspace_.values.values[program.result];
    if (starts.unknown != UnknownReason::None) {
      const Extent extent = extent_of(program.base);
      if (!extent.is_known || extent.first != extent.last) return Covered::NotKnown;
      if (!may_reach(extent, starts, offsets)) return Covered::NotKnown;
      last_ = extent.first;
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

  // Locates the group, as the launch's own addresses.
  Decision locate(std::uint32_t index, PlacedBox& placed, bool& happens) {
    const AccessGroup& group = summary_.groups[index];
    happens = true;
    const AddressProgram& program = summary_.programs[group.program];
    if (!program.is_complete) return unknown(DecisionReason::TooComplicated, index);
    happens = evaluate(summary_.steps, summary_.places, program.place, launch_, workspace_.values);
    if (!happens) return fine();
    if (workspace_.values.is_spent()) return unknown(DecisionReason::TooComplicated, index);
    const Affine& starts = workspace_.values.values[program.result];
    if (group.kind == ptx::EffectKind::Atomic && !keeps_atomics_)
      return {Verdict::NotIdempotent, DecisionReason::Atomic, index, index};
    placed.group = index;
    placed.box.width_bytes = group.width_bytes;
    const auto offset = static_cast<std::int64_t>(group.offset_bytes);
    const OffsetRange bytes{offset, offset + group.width_bytes};
    if (starts.unknown != UnknownReason::None) return widen(group, index, starts, bytes, placed);
    placed.box.starts = starts;
    placed.box.starts.base += static_cast<Wide>(group.offset_bytes);
    placed.box.starts = normalise(placed.box.starts, 64, false, 0);
    if (placed.box.starts.unknown != UnknownReason::None) return widen(group, index, starts, bytes, placed);
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

  Decision widen(const AccessGroup& group, std::uint32_t index, const Affine& starts,
                 const OffsetRange& bytes, PlacedBox& placed) {
    const Extent extent = extent_of(group.base);
    if (!extent.is_known || !may_reach(extent, starts, bytes))
      return unknown(DecisionReason::UnknownAddress, index);
    placed.is_wide = true;
    placed.box.starts = Affine::constant(static_cast<Wide>(extent.first->address));
    placed.box.width_bytes = end_of(*extent.last) - static_cast<Wide>(extent.first->address);
    return fine();
  }

  // Allocations that touch, in one of which an access lies: nearly always one.
  struct Extent {
    bool is_known = false;
    const MemoryRange* first = nullptr;
    const MemoryRange* last = nullptr;
  };

  // False where what is known of the offset leads out of there, whatever the data are.
  static bool may_reach(const Extent& extent, const Affine& starts, const OffsetRange& bytes) {
    return starts.low() + bytes.begin < end_of(*extent.last) &&
           starts.high() + bytes.end > static_cast<Wide>(extent.first->address);
  }

  Extent extent_of(const AddressBase& base) {
    if (has_pointers(base.others)) return {};
    if (base.kind == BaseKind::Variable && base.value < launch_.variable_addresses.size())
      return extent_around(launch_.variable_addresses[base.value]);
    if (base.kind != BaseKind::Parameter) return {};
    const std::uint64_t pointer = read_pointer(launch_, base.value).value_or(0);
    const std::uint64_t second = base.has_second ? read_pointer(launch_, base.second_value).value_or(0) : 0;
    const bool points = is_near_memory(pointer);
    if (points == is_near_memory(second)) return {};  // either may be the pointer
    return extent_around(points ? pointer : second);
  }

  Extent extent_around(std::uint64_t pointer) const {
    const MemoryRange* const range = find_range(launch_.memory, pointer);
    if (range == nullptr) return {};
    Extent extent{true, range, range};
    const MemoryRange* const begin = launch_.memory.data();
    const MemoryRange* const end = begin + launch_.memory.size();
    const auto touch = [](const MemoryRange& before, const MemoryRange& after) {
      return after.address - before.address == before.size_bytes;
    };
    while (extent.first != begin && pointer - extent.first->address < edge_bytes &&
           touch(extent.first[-1], *extent.first))
      --extent.first;
    while (extent.last + 1 != end &&
           extent.last->size_bytes - (pointer - extent.last->address) <= edge_bytes &&
           touch(*extent.last, extent.last[1]))
      ++extent.last;
    return extent;
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

  Decision compare() {
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
      workspace_.values.take(static_cast<std::uint32_t>(workspace_.writes.size() / pairs_of_a_step));
      if (workspace_.values.is_spent())
        return unknown(DecisionReason::TooComplicated, workspace_.writes.front().group);
      for (const PlacedBox& write : workspace_.writes) {
        if (read.end <= write.begin || write.end <= read.begin) continue;
        workspace_.values.take(steps_of_a_comparison);
        if (workspace_.values.is_spent()) return unknown(DecisionReason::TooComplicated, write.group);
        if (!may_meet(write.box, read.box)) continue;
        if (!write.is_wide && !read.is_wide)
          return {Verdict::NotIdempotent, DecisionReason::Overlap, write.group, read.group};
        doubt = {Verdict::Unknown, DecisionReason::WideOverlap, write.group, read.group};
      }
    }
    return doubt;
  }

  // Adds what the group certainly writes, in which order ever its threads come.
  void add_write(PlacedBox placed, OperationEffects& found) {
    const AccessGroup& group = summary_.groups[placed.group];
    bool is_one_to_one = false;
    if (group.is_certain) {
      const ExactPlace place = exact_place(group);
      placed.is_fixed = place.is_whole;
      ExactBytes exact = find_exact_bytes(place, group.width_bytes, launch_);
      is_one_to_one = place.is_whole && exact.is_one_to_one && group.kind == ptx::EffectKind::Write;
      for (const StridedBox& box : exact.boxes) {
        PlacedBox one{box, placed.group};
        if (group.is_store && is_inside(box) && make_canonical(one).verdict == Verdict::Idempotent)
          found.certain_writes.push_back(one.box);
      }
    }
    found.writes.push_back(placed);
    one_to_one_.push_back(is_one_to_one);
  }

  // True when each thread has an address of its own, whatever its conditions are.
  bool is_own(const AccessGroup& group) {
    own_.resize(summary_.groups.size());
    std::optional<bool>& known = own_[static_cast<std::size_t>(&group - summary_.groups.data())];
    if (!known) known = group.is_certain && has_one_address_a_thread(group);
    return *known;
  }

  bool has_one_address_a_thread(const AccessGroup& group) {
    ExactPlace place = exact_place(group);
    place.constraint_count = 0;
    return place.is_whole && find_exact_bytes(place, group.width_bytes, launch_).is_one_to_one;
  }

  void compare_order(OperationEffects& found) {
    constexpr std::size_t most_pairs = 20'000;
    const std::size_t pairs = found.writes.size() * (found.reads.size() + found.writes.size());
    found.may_race = found.may_race || pairs > most_pairs || summary_.has_order_in_block;
    found.values_may_race = found.may_race || summary_.reads_shared;
    for (std::size_t i = 0; i < found.writes.size() && !found.may_race; ++i) {
      const AccessGroup& write = summary_.groups[found.writes[i].group];
      found.may_race = write.kind == ptx::EffectKind::Atomic;
      const auto is_harmless = [&](const PlacedBox& other) {
        if (!may_meet(found.writes[i].box, other.box)) return true;
        return other.group != constant_group && meet_in_one_thread(write, summary_.groups[other.group]);
      };
      found.may_race = found.may_race || !std::all_of(found.reads.begin(), found.reads.end(), is_harmless);
      found.values_may_race =
          found.values_may_race ||
          !std::all_of(found.writes.begin(), found.writes.begin() + static_cast<std::ptrdiff_t>(i),
                       is_harmless);
      found.values_may_race = found.values_may_race || !one_to_one_[i];
    }
    // A thread reads back what it has written itself only where nobody else writes it.
    found.may_race = found.may_race || (found.values_may_race && summary_.reads_own_writes);
    found.values_may_race = found.values_may_race || found.may_race;
  }

  const KernelSummary& summary_;
  const LaunchArguments& launch_;
  DecisionWorkspace& workspace_;
  const MemoryRange* last_ = nullptr;  ///< place where cover() has found something
  bool keeps_atomics_ = false;
  std::vector<std::optional<bool>> own_;  ///< is_own() by group
  std::optional<bool> any_points_;        ///< has_pointers() of the whole parameter block
  std::vector<bool> one_to_one_;  ///< flags by OperationEffects::writes: no two threads write one byte by it
};

}  // namespace

DecisionWorkspace::DecisionWorkspace() {
  reads.reserve(most_boxes);
  writes.reserve(most_boxes);
}

Decision decide(const KernelSummary& summary, const LaunchArguments& launch, DecisionWorkspace& workspace) {
  return Decider(summary, launch, workspace, most_steps_of_decision).run();
}

OperationEffects find_effects(const KernelSummary& summary, const LaunchArguments& launch,
                              DecisionWorkspace& workspace) {
  return Decider(summary, launch, workspace, most_steps_of_effects).effects();
}

PredictedAccess predict(const KernelSummary& summary, std::size_t group, const LaunchArguments& launch,
                        DecisionWorkspace& workspace) {
  PredictedAccess result;
  const PlacedBox placed = Decider(summary, launch, workspace, most_steps_of_effects)
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
