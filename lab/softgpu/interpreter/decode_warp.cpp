// SPDX-License-Identifier: Apache-2.0
/// Barriers and instructions that a warp executes together.
#include <algorithm>
#include <array>

#include "softgpu/interpreter/block.h"
#include "softgpu/interpreter/control_flow.h"
#include "softgpu/interpreter/decode.h"
#include "softgpu/interpreter/warp_sync.h"

namespace firebreak::softgpu {

namespace {

using ptx::Instruction;
using ptx::Opcode;
using ptx::Operand;
using ptx::OperandKind;

/// PTX's operand order: results, then value, lane, clamp, membermask as far as the instruction has them.
Status decode_sync(FunctionDecoder& decoder, const Instruction& i) {
  const SyncOperation operation = select_sync(i);
  if (operation.execute == nullptr) return decoder.unsupported(i);
  std::array<OperandReference, 8> places;
  bool second = false;
  std::uint8_t negated = 0;
  std::size_t next = 0;
  if (operation.widths[0] != 0) {
    const Operand& to = i.operands[next++];
    const auto place = decoder.destination(i, to, operation.widths[0], false);
    if (!place) return tl::unexpected(place.error());
    places[0] = *place;
    second = to.kind == OperandKind::PredicatePair && to.second_register_index != ptx::no_index;
    if (second) places[1] = decoder.register_place(to.second_register_index);
  }
  for (std::size_t slot = 2; slot < operation.widths.size(); ++slot) {
    if (operation.widths[slot] == 0) continue;
    if (next >= i.operands.size()) return decoder.unsupported(i, "an operand is missing");
    if (i.operands[next].negated) negated = static_cast<std::uint8_t>(negated | (1U << slot));
    const auto place = decoder.source(i, i.operands[next++], operation.widths[slot]);
    if (!place) return tl::unexpected(place.error());
    places[slot] = *place;
  }
  MicroOp& op = decoder.emit(operation.execute, i);
  op.operands = places;
  op.negated = negated;
  op.detail = sync_detail(i, operation, second);
  return {};
}

BarrierAction action_of(const Instruction& i) {
  if (i.opcode == Opcode::BarSync) return BarrierAction::Sync;
  if (i.opcode == Opcode::BarArrive) return BarrierAction::Arrive;
  switch (i.modifiers.bool_op) {
    case ptx::BoolOp::Popc:
      return BarrierAction::Population;
    case ptx::BoolOp::And:
      return BarrierAction::And;
    default:
      return BarrierAction::Or;
  }
}

Status decode_barrier(FunctionDecoder& decoder, const Instruction& i) {
  const bool reduces = i.opcode == Opcode::BarRed;
  const std::size_t id_at = reduces ? 1 : 0;
  const std::size_t predicate_at = i.operands.size() - 1;
  const std::size_t last = reduces ? predicate_at : i.operands.size();
  std::array<OperandReference, 8> places;
  bool negated = false;
  if (reduces) {
    const std::uint32_t width = i.modifiers.bool_op == ptx::BoolOp::Popc ? 32 : 1;
    const auto to = decoder.destination(i, i.operands[0], width, false);
    const auto predicate = decoder.source(i, i.operands[predicate_at], 1);
    if (!to) return tl::unexpected(to.error());
    if (!predicate) return tl::unexpected(predicate.error());
    places[0] = *to;
    places[3] = *predicate;
    negated = i.operands[predicate_at].negated;
  }
  for (std::size_t k = id_at; k < last; ++k) {
    const auto place = decoder.source(i, i.operands[k], 32);
    if (!place) return tl::unexpected(place.error());
    places[1 + k - id_at] = *place;
  }
  MicroOp& op = decoder.emit(&execute_barrier, i);
  op.operands = places;
  op.detail = static_cast<std::int32_t>(action_of(i));
  op.arity = static_cast<std::uint8_t>(last - id_at);
  op.negated = negated ? 8 : 0;
  return {};
}

Status decode_active_mask(FunctionDecoder& decoder, const Instruction& i) {
  const auto to = decoder.destination(i, i.operands[0], 32, false);
  if (!to) return tl::unexpected(to.error());
  decoder.emit(&execute_active_mask, i).operands[0] = *to;
  return {};
}

Status decode_fence(FunctionDecoder& decoder, const Instruction& i) {
  decoder.emit(&execute_fence, i);
  return {};
}

struct Entry {
  Opcode opcode;
  DecodeFunction decode;
};
constexpr std::array entries = {
    Entry{Opcode::Shfl, &decode_sync},        Entry{Opcode::ShflSync, &decode_sync},
    Entry{Opcode::Vote, &decode_sync},        Entry{Opcode::VoteSync, &decode_sync},
    Entry{Opcode::MatchAny, &decode_sync},    Entry{Opcode::MatchAll, &decode_sync},
    Entry{Opcode::ReduxSync, &decode_sync},   Entry{Opcode::ElectSync, &decode_sync},
    Entry{Opcode::BarWarpSync, &decode_sync}, Entry{Opcode::Activemask, &decode_active_mask},
    Entry{Opcode::BarSync, &decode_barrier},  Entry{Opcode::BarArrive, &decode_barrier},
    Entry{Opcode::BarRed, &decode_barrier},   Entry{Opcode::Membar, &decode_fence},
    Entry{Opcode::Fence, &decode_fence},
};

}  // namespace

DecodeFunction find_warp_decoder(Opcode opcode) {
  for (const Entry& entry : entries) {
    if (entry.opcode == opcode) return entry.decode;
  }
  return nullptr;
}

}  // namespace firebreak::softgpu
