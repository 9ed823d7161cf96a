// SPDX-License-Identifier: Apache-2.0
/// Instructions that work on each lane alone.
#include <algorithm>
#include <array>

#include "softgpu/interpreter/alu_carry.h"
#include "softgpu/interpreter/decode.h"
#include "softgpu/interpreter/half.h"

namespace firebreak::softgpu {

namespace {

using ptx::Instruction;
using ptx::Opcode;
using ptx::OperandKind;
using ptx::Type;

Selected select_arithmetic(const Instruction& i) {
  switch (i.type) {
    case Type::F16:
    case Type::F16x2:
    case Type::Bf16:
    case Type::Bf16x2:
      return select_half(i);
    case Type::F32:
    case Type::F64:
      return select_float(i);
    default:
      return select_integer(i);
  }
}

std::int32_t dot_detail(const Instruction& i) {
  const bool upper = i.modifiers.half == ptx::Half::Hi;
  return (ptx::kind_of(i.type) == ptx::TypeKind::Signed ? 1 : 0) |
         (ptx::kind_of(i.source_type) == ptx::TypeKind::Signed ? 2 : 0) | (upper ? 4 : 0);
}

Status decode_arithmetic(FunctionDecoder& decoder, const Instruction& i) {
  if (const Selected carry = select_carry(i)) {
    if (Status status = decoder.emit_selected(i, carry); !status) return status;
    decoder.code().code.back().operands[carry_operand] = decoder.frame().carry;
    return {};
  }
  if (Status status = decoder.emit_selected(i, select_arithmetic(i)); !status) return status;
  decoder.code().code.back().detail = dot_detail(i);
  return {};
}

Status decode_bits(FunctionDecoder& decoder, const Instruction& i) {
  return decoder.emit_selected(i, select_bits(i));
}

Status decode_convert(FunctionDecoder& decoder, const Instruction& i) {
  return decoder.emit_selected(i, select_convert(i));
}

Status decode_choice(FunctionDecoder& decoder, const Instruction& i) {
  if (Status status = decoder.emit_selected(i, select_choice(i)); !status) return status;
  decoder.code().code.back().detail = static_cast<std::int32_t>(i.modifiers.test_kind);
  return {};
}

/// p = a cmp b into `to`.
Status emit_comparison(FunctionDecoder& decoder, const Instruction& i, Type type, int half,
                       OperandReference to) {
  const Selected selected = select_comparison(i, type, half);
  if (!selected) return decoder.unsupported(i);
  std::array<OperandReference, 3> places;
  places[0] = to;
  for (std::size_t k = 1; k < 3; ++k) {
    const auto place = decoder.source(i, i.operands[k], selected.widths[k]);
    if (!place) return tl::unexpected(place.error());
    places[k] = *place;
  }
  MicroOp& op = decoder.emit(selected.execute, i);
  std::copy(places.begin(), places.end(), op.operands.begin());
  return {};
}

/// to = (a, perhaps inverted) op c.
Status emit_combination(FunctionDecoder& decoder, const Instruction& i, OperandReference to,
                        OperandReference a, bool inverted) {
  const ptx::Operand& third = i.operands[3];
  const auto c = decoder.source(i, third, 1);
  if (!c) return tl::unexpected(c.error());
  MicroOp& op = decoder.emit(select_predicate_combination(i.modifiers.bool_op).execute, i);
  op.operands[0] = to;
  op.operands[1] = a;
  op.operands[2] = *c;
  op.negated = static_cast<std::uint8_t>((inverted ? 2U : 0U) | (third.negated ? 4U : 0U));
  return {};
}

void emit_inversion(FunctionDecoder& decoder, const Instruction& i, OperandReference to,
                    OperandReference from) {
  MicroOp& op = decoder.emit(select_predicate_combination(ptx::BoolOp::And).execute, i);
  op.operands = {to, from, from};
  op.negated = 6;
}

OperandReference predicate_place(FunctionDecoder& decoder, std::uint32_t index) {
  return index == ptx::no_index ? decoder.temporary(1) : decoder.register_place(index);
}

/// p|q of packed types: the low halves' result and the high halves'.
Status decode_packed_setp(FunctionDecoder& decoder, const Instruction& i, OperandReference p,
                          OperandReference q) {
  const std::array<OperandReference, 2> to = {p, q};
  for (int half = 0; half < 2; ++half) {
    const bool combined = i.modifiers.bool_op != ptx::BoolOp::None;
    const OperandReference result = combined ? decoder.temporary(1) : to[static_cast<std::size_t>(half)];
    if (Status status = emit_comparison(decoder, i, i.type, half, result); !status) return status;
    if (!combined) continue;
    Status status = emit_combination(decoder, i, to[static_cast<std::size_t>(half)], result, false);
    if (!status) return status;
  }
  return {};
}

Status decode_setp(FunctionDecoder& decoder, const Instruction& i) {
  const ptx::Operand& to = i.operands[0];
  const bool is_pair = to.kind == OperandKind::PredicatePair;
  const std::uint32_t first = to.kind == OperandKind::Sink ? ptx::no_index : to.register_index;
  const OperandReference p = predicate_place(decoder, first);
  if (i.type == Type::F16x2 || i.type == Type::Bf16x2) {
    return decode_packed_setp(decoder, i, p,
                              predicate_place(decoder, is_pair ? to.second_register_index : ptx::no_index));
  }
  const bool combined = i.modifiers.bool_op != ptx::BoolOp::None;
  const bool second = is_pair && to.second_register_index != ptx::no_index;
  const OperandReference result = combined || second ? decoder.temporary(1) : p;
  if (Status status = emit_comparison(decoder, i, i.type, 0, result); !status) return status;
  if (!combined && !second) return {};
  const OperandReference q = second ? decoder.register_place(to.second_register_index) : OperandReference();
  if (!combined) {
    emit_inversion(decoder, i, q, result);
    emit_inversion(decoder, i, p, q);
    return {};
  }
  // The third operand may be p or q itself: both results come from temporaries.
  const OperandReference complement = decoder.temporary(1);
  if (second) {
    if (Status status = emit_combination(decoder, i, complement, result, true); !status) return status;
  }
  if (Status status = emit_combination(decoder, i, p, result, false); !status) return status;
  if (second) {
    emit_inversion(decoder, i, result, complement);
    emit_inversion(decoder, i, q, result);
  }
  return {};
}

std::uint64_t true_value(Type type) {
  switch (type) {
    case Type::F32:
      return std::bit_cast<std::uint32_t>(1.0F);
    case Type::F16:
    case Type::F16x2:
      return 0x3C00;
    case Type::Bf16:
    case Type::Bf16x2:
      return 0x3F80;
    default:
      return ~std::uint64_t{0};
  }
}

Status decode_packed_set(FunctionDecoder& decoder, const Instruction& i) {
  if (i.modifiers.bool_op != ptx::BoolOp::None) return decoder.unsupported(i, "a combined comparison");
  if (Status status = decoder.emit_selected(i, select_packed_set(i.source_type)); !status) return status;
  MicroOp& op = decoder.code().code.back();
  op.detail = static_cast<std::int32_t>(i.modifiers.compare);
  op.immediate = true_value(i.type) & 0xFFFF;
  return {};
}

Status decode_set(FunctionDecoder& decoder, const Instruction& i) {
  if (i.source_type == Type::F16x2 || i.source_type == Type::Bf16x2) return decode_packed_set(decoder, i);
  OperandReference result = decoder.temporary(1);
  if (Status status = emit_comparison(decoder, i, i.source_type, 0, result); !status) return status;
  if (i.modifiers.bool_op != ptx::BoolOp::None) {
    const OperandReference combined = decoder.temporary(1);
    if (Status status = emit_combination(decoder, i, combined, result, false); !status) return status;
    result = combined;
  }
  const Selected selected = select_from_predicate(i.type);
  const auto to = decoder.destination(i, i.operands[0], selected.widths[0], false);
  if (!to) return tl::unexpected(to.error());
  MicroOp& op = decoder.emit(selected.execute, i);
  op.operands[0] = *to;
  op.operands[1] = result;
  op.immediate = true_value(i.type);
  return {};
}

struct Entry {
  DecodeFunction decode;
  std::initializer_list<Opcode> opcodes;
};
const std::array<Entry, 6> entries = {{
    {&decode_arithmetic,
     {Opcode::Abs,   Opcode::Add, Opcode::Addc, Opcode::Copysign, Opcode::Cos, Opcode::Div,   Opcode::Dp2a,
      Opcode::Dp4a,  Opcode::Ex2, Opcode::Fma,  Opcode::Lg2,      Opcode::Mad, Opcode::Mad24, Opcode::Madc,
      Opcode::Max,   Opcode::Min, Opcode::Mul,  Opcode::Mul24,    Opcode::Neg, Opcode::Rcp,   Opcode::Rem,
      Opcode::Rsqrt, Opcode::Sad, Opcode::Sin,  Opcode::Sqrt,     Opcode::Sub, Opcode::Subc,  Opcode::Tanh}},
    {&decode_bits,
     {Opcode::And, Opcode::Bfe, Opcode::Bfi, Opcode::Bfind, Opcode::Bmsk, Opcode::Brev, Opcode::Clz,
      Opcode::Cnot, Opcode::Fns, Opcode::Lop3, Opcode::Not, Opcode::Or, Opcode::Popc, Opcode::Prmt,
      Opcode::Shf, Opcode::Shl, Opcode::Shr, Opcode::Szext, Opcode::Xor}},
    {&decode_choice, {Opcode::Selp, Opcode::Slct, Opcode::Testp}},
    {&decode_convert, {Opcode::Cvt, Opcode::CvtPack}},
    {&decode_setp, {Opcode::Setp}},
    {&decode_set, {Opcode::Set}},
}};

}  // namespace

DecodeFunction find_lane_decoder(Opcode opcode) {
  for (const Entry& entry : entries) {
    if (std::find(entry.opcodes.begin(), entry.opcodes.end(), opcode) != entry.opcodes.end())
      return entry.decode;
  }
  return nullptr;
}

}  // namespace firebreak::softgpu
