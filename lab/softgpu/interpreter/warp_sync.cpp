// SPDX-License-Identifier: Apache-2.0
#include "softgpu/interpreter/warp_sync.h"

#include <algorithm>
#include <limits>

namespace firebreak::softgpu {

namespace {

using ptx::AtomicOp;
using ptx::Opcode;
using ptx::ShuffleMode;
using ptx::Type;
using ptx::VoteMode;

constexpr std::size_t destination = 0;
constexpr std::size_t second_destination = 1;
constexpr std::size_t value = 2;
constexpr std::size_t source_lane = 3;
constexpr std::size_t clamp = 4;
constexpr std::size_t members = 5;

/// `detail` says which operands there are. The low byte is for the operation itself.
enum SyncDetail : std::int32_t {
  wide_value = 1 << 8,
  predicate_value = 1 << 9,
  has_value = 1 << 10,
  has_source = 1 << 11,
  has_second = 1 << 12,
  implicit_members = 1 << 13,  ///< the forms before .sync: whoever is active
};

bool detail_has(const MicroOp& op, SyncDetail what) { return (op.detail & what) != 0; }

/// Reads what the lanes bring.
void gather(const Warp& warp, const MicroOp& op, LaneMask lanes, Exchange& exchange) {
  const LaneMask inverted = ((op.negated >> value) & 1U) != 0 ? all_lanes : 0;
  for (LaneMask left = lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(left));
    exchange.members[lane] = detail_has(op, implicit_members)
                                 ? lanes
                                 : warp.pointer<const std::uint32_t>(op.operands[members])[lane];
    if (detail_has(op, wide_value)) {
      exchange.value[lane] = warp.pointer<const std::uint64_t>(op.operands[value])[lane];
    } else if (detail_has(op, has_value)) {
      exchange.value[lane] = warp.pointer<const std::uint32_t>(op.operands[value])[lane];
    }
    if (!detail_has(op, has_source)) continue;
    exchange.source[lane] = warp.pointer<const std::uint32_t>(op.operands[source_lane])[lane];
    exchange.clamp[lane] = warp.pointer<const std::uint32_t>(op.operands[clamp])[lane];
  }
  if (detail_has(op, predicate_value)) {
    exchange.yes = (exchange.yes & ~lanes) | ((warp.predicate(op.operands[value]) ^ inverted) & lanes);
  }
  exchange.arrived |= lanes;
}

void write_predicate(const Warp& warp, OperandReference reference, int lane, bool set) {
  const LaneMask bit = LaneMask{1} << lane;
  LaneMask& mask = warp.predicate(reference);
  mask = set ? mask | bit : mask & ~bit;
}

template <class Visit>
void each_member(LaneMask lanes, Visit visit) {
  for (; lanes != 0; lanes &= lanes - 1) visit(static_cast<std::size_t>(std::countr_zero(lanes)));
}

/// An operation gives the results of one lane from what all brought.
struct Shuffle {
  static void finish(const Warp& warp, const MicroOp& op, int lane, const Exchange& exchange, LaneMask) {
    const auto self = static_cast<std::size_t>(lane);
    const auto b = static_cast<int>(exchange.source[self] & 0x1FU);
    const auto limit = static_cast<int>(exchange.clamp[self] & 0x1FU);
    const auto segment = static_cast<int>((exchange.clamp[self] >> 8) & 0x1FU);
    const int most = (lane & segment) | (limit & ~segment);
    const int least = lane & segment;
    int from = lane;
    bool inside = false;
    switch (static_cast<ShuffleMode>(op.detail & 0xFF)) {
      case ShuffleMode::Up:
        from = lane - b;
        inside = from >= most;
        break;
      case ShuffleMode::Down:
        from = lane + b;
        inside = from <= most;
        break;
      case ShuffleMode::Bfly:
        from = lane ^ b;
        inside = from <= most;
        break;
      default:
        from = least | (b & ~segment);
        inside = from <= most;
        break;
    }
    if (!inside) from = lane;
    const bool there = ((exchange.arrived >> from) & 1U) != 0;
    const auto result = there ? exchange.value[static_cast<std::size_t>(from)] : exchange.value[self];
    warp.pointer<std::uint32_t>(op.operands[destination])[lane] = static_cast<std::uint32_t>(result);
    if (detail_has(op, has_second)) write_predicate(warp, op.operands[second_destination], lane, inside);
  }
};

struct Vote {
  static void finish(const Warp& warp, const MicroOp& op, int lane, const Exchange& exchange,
                     LaneMask present) {
    const LaneMask yes = exchange.yes & present;
    switch (static_cast<VoteMode>(op.detail & 0xFF)) {
      case VoteMode::All:
        return write_predicate(warp, op.operands[destination], lane, yes == present);
      case VoteMode::Any:
        return write_predicate(warp, op.operands[destination], lane, yes != 0);
      case VoteMode::Uni:
        return write_predicate(warp, op.operands[destination], lane, yes == 0 || yes == present);
      default:
        warp.pointer<std::uint32_t>(op.operands[destination])[lane] = yes;
    }
  }
};

struct MatchAny {
  static void finish(const Warp& warp, const MicroOp& op, int lane, const Exchange& exchange,
                     LaneMask present) {
    LaneMask same = 0;
    const std::uint64_t mine = exchange.value[static_cast<std::size_t>(lane)];
    each_member(present, [&](std::size_t i) { same |= exchange.value[i] == mine ? LaneMask{1} << i : 0; });
    warp.pointer<std::uint32_t>(op.operands[destination])[lane] = same;
  }
};

struct MatchAll {
  static void finish(const Warp& warp, const MicroOp& op, int lane, const Exchange& exchange,
                     LaneMask present) {
    bool same = true;
    const std::uint64_t mine = exchange.value[static_cast<std::size_t>(lane)];
    each_member(present, [&](std::size_t i) { same = same && exchange.value[i] == mine; });
    warp.pointer<std::uint32_t>(op.operands[destination])[lane] = same ? present : 0;
    if (detail_has(op, has_second)) write_predicate(warp, op.operands[second_destination], lane, same);
  }
};

template <AtomicOp operation>
struct Reduce {
  template <class T>
  static T combine(T a, T b) {
    switch (operation) {
      case AtomicOp::Add:
        return static_cast<T>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
      case AtomicOp::Min:
        return std::min(a, b);
      case AtomicOp::Max:
        return std::max(a, b);
      case AtomicOp::And:
        return a & b;
      case AtomicOp::Or:
        return a | b;
      default:
        return a ^ b;
    }
  }
  template <class T>
  static std::uint32_t all(const Exchange& exchange, LaneMask present) {
    T result = static_cast<T>(exchange.value[static_cast<std::size_t>(std::countr_zero(present))]);
    each_member(present & (present - 1),
                [&](std::size_t i) { result = combine(result, static_cast<T>(exchange.value[i])); });
    return static_cast<std::uint32_t>(result);
  }
  static void finish(const Warp& warp, const MicroOp& op, int lane, const Exchange& exchange,
                     LaneMask present) {
    const bool is_signed = (op.detail & 0xFF) != 0;
    const std::uint32_t result =
        is_signed ? all<std::int32_t>(exchange, present) : all<std::uint32_t>(exchange, present);
    warp.pointer<std::uint32_t>(op.operands[destination])[lane] = result;
  }
};

struct Elect {
  static void finish(const Warp& warp, const MicroOp& op, int lane, const Exchange&, LaneMask present) {
    const int leader = std::countr_zero(present);
    warp.pointer<std::uint32_t>(op.operands[destination])[lane] = static_cast<std::uint32_t>(leader);
    if (detail_has(op, has_second))
      write_predicate(warp, op.operands[second_destination], lane, lane == leader);
  }
};

struct Nothing {
  static void finish(const Warp&, const MicroOp&, int, const Exchange&, LaneMask) {}
};

template <class Operation>
const MicroOp* execute_sync(Warp& warp, const MicroOp* op);

template <class Operation>
void finish_lanes(const Warp& warp, const MicroOp& op, LaneMask lanes, const Exchange& exchange) {
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const LaneMask present = exchange.members[static_cast<std::size_t>(lane)] & exchange.arrived;
    Operation::finish(warp, op, lane, exchange, present);
  }
}

/// Ends the wait of a group in `op`: the operation itself, called by the one that found the members complete.
template <class Operation>
void finish_waiting(Warp& warp, const MicroOp& op, LaneMask lanes) {
  finish_lanes<Operation>(warp, op, lanes, warp.exchange);
}
using FinishWaiting = void (*)(Warp&, const MicroOp&, LaneMask);

struct SyncEntry {
  Execute execute;
  FinishWaiting finish;
};
template <class Operation>
constexpr SyncEntry sync_entry{&execute_sync<Operation>, &finish_waiting<Operation>};

constexpr std::array sync_entries = {
    sync_entry<Shuffle>,
    sync_entry<Vote>,
    sync_entry<MatchAny>,
    sync_entry<MatchAll>,
    sync_entry<Reduce<AtomicOp::Add>>,
    sync_entry<Reduce<AtomicOp::Min>>,
    sync_entry<Reduce<AtomicOp::Max>>,
    sync_entry<Reduce<AtomicOp::And>>,
    sync_entry<Reduce<AtomicOp::Or>>,
    sync_entry<Reduce<AtomicOp::Xor>>,
    sync_entry<Elect>,
    sync_entry<Nothing>,
};

FinishWaiting finish_of(const MicroOp& op) {
  for (const SyncEntry& entry : sync_entries) {
    if (entry.execute == op.execute) return entry.finish;
  }
  return nullptr;
}

bool all_present(const Warp& warp, LaneMask lanes, const Exchange& exchange) {
  bool complete = true;
  each_member(lanes, [&](std::size_t i) {
    if ((exchange.members[i] & warp.live & ~exchange.arrived) != 0) complete = false;
  });
  return complete;
}

template <class Operation>
const MicroOp* execute_sync(Warp& warp, const MicroOp* op) {
  const LaneMask lanes = warp.lanes(*op);
  if (lanes == 0) return op + 1;
  if (lanes != warp.active) return warp.split(lanes, op, op + 1);
  Exchange exchange;
  gather(warp, *op, lanes, exchange);
  if (all_present(warp, lanes, exchange)) {
    finish_lanes<Operation>(warp, *op, lanes, exchange);
    return op + 1;
  }
  gather(warp, *op, lanes, warp.exchange);
  warp.wait(op, Wait::Sync);
  release_sync(warp);
  return nullptr;
}

/// The waiting lanes that can be served now: closed under membership. A lane whose members are not all here
/// drops out; since it was counted as a member of others, until nothing changes.
LaneMask complete_lanes(const Warp& warp) {
  LaneMask candidates = 0;
  for (std::uint32_t i = 0; i < warp.group_count; ++i) {
    if (warp.groups[i].wait == Wait::Sync) candidates |= warp.groups[i].lanes;
  }
  for (LaneMask before = 0; before != candidates;) {
    before = candidates;
    each_member(before, [&](std::size_t lane) {
      if ((warp.exchange.members[lane] & warp.live & ~before) != 0) candidates &= ~(LaneMask{1} << lane);
    });
  }
  return candidates;
}

}  // namespace

bool release_sync(Warp& warp) {
  const LaneMask served = complete_lanes(warp);
  if (served == 0) return false;
  const std::uint32_t count = warp.group_count;
  for (std::uint32_t i = 0; i < count; ++i) {
    Group group = warp.groups[i];
    const LaneMask lanes = group.lanes & served;
    if (group.wait != Wait::Sync || lanes == 0) continue;
    warp.select(group);
    warp.exchange.arrived = served;
    finish_of (*group.next)(warp, *group.next, lanes);
    const LaneMask others = group.lanes & ~served;
    warp.groups[i] = {group.frame, group.next + 1, lanes, Wait::None, 0};
    if (others != 0) warp.add_group({group.frame, group.next, others, Wait::Sync, 0});
  }
  warp.exchange.arrived = 0;
  return true;
}

namespace {

template <class Operation>
SyncOperation operation(std::array<std::uint8_t, 6> widths) {
  return {&execute_sync<Operation>, widths};
}

SyncOperation select_redux(AtomicOp how) {
  constexpr std::array<std::uint8_t, 6> widths = {32, 0, 32, 0, 0, 32};
  switch (how) {
    case AtomicOp::Add:
      return operation<Reduce<AtomicOp::Add>>(widths);
    case AtomicOp::Min:
      return operation<Reduce<AtomicOp::Min>>(widths);
    case AtomicOp::Max:
      return operation<Reduce<AtomicOp::Max>>(widths);
    case AtomicOp::And:
      return operation<Reduce<AtomicOp::And>>(widths);
    case AtomicOp::Or:
      return operation<Reduce<AtomicOp::Or>>(widths);
    case AtomicOp::Xor:
      return operation<Reduce<AtomicOp::Xor>>(widths);
    default:
      return {};
  }
}

}  // namespace

SyncOperation select_sync(const ptx::Instruction& i) {
  const auto width = static_cast<std::uint8_t>(ptx::size_bytes(i.type) * 8);
  const std::uint8_t result = i.modifiers.vote_mode == VoteMode::Ballot ? 32 : 1;
  switch (i.opcode) {
    case Opcode::Shfl:
      return operation<Shuffle>({32, 1, 32, 32, 32, 0});
    case Opcode::ShflSync:
      return operation<Shuffle>({32, 1, 32, 32, 32, 32});
    case Opcode::Vote:
      return operation<Vote>({result, 0, 1, 0, 0, 0});
    case Opcode::VoteSync:
      return operation<Vote>({result, 0, 1, 0, 0, 32});
    case Opcode::MatchAny:
      return operation<MatchAny>({32, 0, width, 0, 0, 32});
    case Opcode::MatchAll:
      return operation<MatchAll>({32, 1, width, 0, 0, 32});
    case Opcode::ReduxSync:
      return select_redux(i.modifiers.atomic_op);
    case Opcode::ElectSync:
      return operation<Elect>({32, 1, 0, 0, 0, 32});
    case Opcode::BarWarpSync:
      return operation<Nothing>({0, 0, 0, 0, 0, 32});
    default:
      return {};
  }
}

std::int32_t sync_detail(const ptx::Instruction& i, const SyncOperation& operation, bool second) {
  std::int32_t detail =
      static_cast<std::int32_t>(i.modifiers.shuffle_mode) | static_cast<std::int32_t>(i.modifiers.vote_mode);
  if (i.opcode == Opcode::ReduxSync && i.type == Type::S32) detail = 1;
  if (operation.widths[value] == 64) detail |= wide_value;
  if (operation.widths[value] == 1) detail |= predicate_value;
  if (operation.widths[value] == 32) detail |= has_value;
  if (operation.widths[source_lane] != 0) detail |= has_source;
  if (operation.widths[members] == 0) detail |= implicit_members;
  if (second) detail |= has_second;
  return detail;
}

}  // namespace firebreak::softgpu
