// SPDX-License-Identifier: Apache-2.0
/// mov, loads, stores, atomics, copies and addresses.
#include <algorithm>
#include <array>
#include <bit>

#include "softgpu/interpreter/atomics.h"
#include "softgpu/interpreter/control_flow.h"
#include "softgpu/interpreter/decode.h"
#include "softgpu/interpreter/memory.h"
#include "softgpu/interpreter/move.h"

namespace firebreak::softgpu {

namespace {

using ptx::Instruction;
using ptx::Opcode;
using ptx::Operand;
using ptx::OperandKind;
using ptx::StateSpace;
using ptx::SymbolKind;

/// An address operand, decoded.
struct Address {
  OperandReference place;
  std::uint64_t offset = 0;
  bool narrow = false;
  bool relative = false;
};

Result<Address> decode_address(FunctionDecoder& decoder, const Instruction& i, const Operand& operand) {
  Address address;
  address.offset = static_cast<std::uint64_t>(operand.offset);
  switch (operand.kind) {
    case OperandKind::RegisterAddress:
      address.place = decoder.register_place(operand.register_index);
      address.narrow = decoder.register_width(operand.register_index) == 32;
      return address;
    case OperandKind::SymbolAddress: {
      const auto base = decoder.address_of(i, operand.symbol, address.relative);
      if (!base) return propagate(base);
      address.offset += *base;
      break;
    }
    case OperandKind::AbsoluteAddress:
      break;
    default:
      return decoder.unsupported(i, "this kind of address");
  }
  address.place = decoder.constant(64, 0);
  return address;
}

void set_address(MicroOp& op, const Address& address) {
  op.operands[address_operand] = address.place;
  op.immediate = address.offset;
  op.flags = static_cast<std::uint16_t>(op.flags | (address.narrow ? narrow_address : 0) |
                                        (address.relative ? frame_relative : 0));
}

/// A symbol in .param space of an entry is the kernel's; all others are the frame's.
Space parameter_space(const FunctionDecoder& decoder, const Operand& address) {
  const bool is_variable =
      address.kind == OperandKind::SymbolAddress && address.symbol.kind == SymbolKind::FunctionVariable;
  return decoder.function().is_entry && !is_variable ? Space::EntryParameter : Space::FrameParameter;
}

Space space_of(const FunctionDecoder& decoder, const Instruction& i, const Operand& address) {
  switch (i.modifiers.space) {
    case StateSpace::Global:
      return Space::Global;
    case StateSpace::Const:
      return Space::Constant;
    case StateSpace::Shared:
    case StateSpace::SharedCluster:
      return Space::Shared;
    case StateSpace::Local:
      return Space::Local;
    case StateSpace::Param:
      return parameter_space(decoder, address);
    default:
      break;
  }
  return i.opcode == Opcode::Ldu ? Space::Global : Space::Generic;
}

/// The registers or constants of a value operand, one or a vector; all of one width.
struct Elements {
  std::array<OperandReference, 4> places;
  std::uint32_t width_bits = 0;
  std::size_t count = 0;
};

std::uint32_t element_width(const FunctionDecoder& decoder, const Operand& operand,
                            std::uint32_t memory_bits) {
  if (operand.kind == OperandKind::Register) return decoder.register_width(operand.register_index);
  for (const ptx::VectorElement& element : operand.elements) {
    if (element.kind == OperandKind::Register) return decoder.register_width(element.register_index);
  }
  return memory_bits;
}

Result<Elements> decode_elements(FunctionDecoder& decoder, const Instruction& i, const Operand& operand) {
  Elements elements;
  elements.width_bits = element_width(decoder, operand, ptx::size_bytes(i.type) * 8);
  if (operand.kind == OperandKind::Vector) {
    if (operand.elements.size() > elements.places.size())
      return decoder.unsupported(i, "more than four elements");
    for (const ptx::VectorElement& element : operand.elements) {
      const bool is_register = element.kind == OperandKind::Register;
      if (is_register && decoder.register_width(element.register_index) != elements.width_bits) {
        return decoder.unsupported(i, "elements of different widths");
      }
      const auto place = decoder.element_source(element, elements.width_bits);
      if (!place) return propagate(place);
      elements.places[elements.count++] = *place;
    }
    return elements;
  }
  const auto place = operand.kind == OperandKind::Sink
                         ? Result<OperandReference>(decoder.temporary(elements.width_bits))
                         : decoder.source(i, operand, elements.width_bits);
  if (!place) return propagate(place);
  elements.places[0] = *place;
  elements.count = 1;
  return elements;
}

Status emit_access(FunctionDecoder& decoder, const Instruction& i, const Operand& where,
                   const Elements& elements, Transfer transfer, bool is_store) {
  const std::uint32_t total = ptx::size_bytes(i.type) * static_cast<std::uint32_t>(elements.count);
  if (transfer == nullptr || !std::has_single_bit(total)) return decoder.unsupported(i);
  const auto address = decode_address(decoder, i, where);
  if (!address) return tl::unexpected(address.error());
  const Space space = space_of(decoder, i, where);
  MicroOp& op = decoder.emit(
      is_store ? select_access<GpuAccess::Store>(space) : select_access<GpuAccess::Load>(space), i);
  std::copy(elements.places.begin(), elements.places.end(), op.operands.begin());
  op.transfer = transfer;
  op.arity = static_cast<std::uint8_t>(elements.count);
  op.access_log2 = static_cast<std::uint8_t>(std::countr_zero(total));
  set_address(op, *address);
  return {};
}

Status decode_load(FunctionDecoder& decoder, const Instruction& i) {
  const auto elements = decode_elements(decoder, i, i.operands[0]);
  if (!elements) return tl::unexpected(elements.error());
  return emit_access(decoder, i, i.operands[1], *elements, select_load(i.type, elements->width_bits), false);
}

Status decode_store(FunctionDecoder& decoder, const Instruction& i) {
  const auto elements = decode_elements(decoder, i, i.operands[1]);
  if (!elements) return tl::unexpected(elements.error());
  return emit_access(decoder, i, i.operands[0], *elements, select_store(i.type, elements->width_bits), true);
}

/// The barrier's count, as a store: nobody waits at it here.
Status decode_barrier_init(FunctionDecoder& decoder, const Instruction& i) {
  if (i.operands[1].kind == OperandKind::Register) return decoder.unsupported(i, "a count in a register");
  const auto elements = decode_elements(decoder, i, i.operands[1]);
  if (!elements) return tl::unexpected(elements.error());
  const Transfer transfer = select_store(i.type, elements->width_bits);
  return emit_access(decoder, i, i.operands[0], *elements, transfer, true);
}

/// One atomic on `size` bytes at `extra` bytes beyond the address.
Status emit_atomic(FunctionDecoder& decoder, const Instruction& i, const Operand& where, OperandReference old,
                   OperandReference operand, OperandReference second, std::uint64_t extra) {
  const Transfer transfer = select_atomic(i.modifiers.atomic_op, i.type);
  if (transfer == nullptr) return decoder.unsupported(i, "this atomic operation");
  const auto address = decode_address(decoder, i, where);
  if (!address) return tl::unexpected(address.error());
  const Space space = space_of(decoder, i, where);
  MicroOp& op = decoder.emit(select_access<GpuAccess::Atomic>(space), i);
  op.operands[0] = old;
  op.operands[1] = operand;
  op.operands[2] = second;
  op.transfer = transfer;
  op.access_log2 = static_cast<std::uint8_t>(std::countr_zero(ptx::size_bytes(i.type)));
  set_address(op, *address);
  op.immediate += extra;
  return {};
}

/// atom and red; a vector is one atomic for each element.
Status decode_atomic(FunctionDecoder& decoder, const Instruction& i) {
  const bool has_result = i.opcode == Opcode::Atom;
  const std::size_t at = has_result ? 1 : 0;
  const std::uint32_t width = ptx::size_bytes(i.type) * 8;
  const auto values = decode_elements(decoder, i, i.operands[at + 1]);
  if (!values) return tl::unexpected(values.error());
  Elements old;
  for (std::size_t k = 0; k < values->count; ++k) old.places[k] = decoder.temporary(width);
  if (has_result) {
    const auto results = decode_elements(decoder, i, i.operands[0]);
    if (!results) return tl::unexpected(results.error());
    if (results->width_bits != width) return decoder.unsupported(i, "a register of the wrong width");
    old = *results;
  }
  OperandReference second;
  if (i.modifiers.atomic_op == ptx::AtomicOp::Cas) {
    const auto place = decoder.source(i, i.operands[at + 2], width);
    if (!place) return tl::unexpected(place.error());
    second = *place;
  }
  for (std::size_t k = 0; k < values->count; ++k) {
    const std::uint64_t extra = k * ptx::size_bytes(i.type);
    Status status = emit_atomic(decoder, i, i.operands[at], old.places[k], values->places[k], second, extra);
    if (!status) return status;
  }
  return {};
}

Status decode_copy_async(FunctionDecoder& decoder, const Instruction& i) {
  const auto to = decode_address(decoder, i, i.operands[0]);
  const auto from = decode_address(decoder, i, i.operands[1]);
  if (!to) return tl::unexpected(to.error());
  if (!from) return tl::unexpected(from.error());
  const std::uint64_t size = i.operands[2].bits;
  if (!std::has_single_bit(size) || size < 4 || size > 16) return decoder.unsupported(i, "this size");
  const bool has_size = i.operands.size() > 3 && !(i.modifiers.cache_hint && i.operands.size() == 4);
  OperandReference wanted;
  if (has_size) {
    const Operand& operand = i.operands[3];
    const bool is_predicate =
        operand.kind == OperandKind::Register && decoder.register_width(operand.register_index) == 1;
    if (is_predicate) return decoder.unsupported(i, "ignore-src");
    const auto place = decoder.source(i, operand, 32);
    if (!place) return tl::unexpected(place.error());
    wanted = *place;
  }
  const OperandReference offset = decoder.constant(64, from->offset);
  MicroOp& op = decoder.emit(&execute_copy_async, i);
  set_address(op, *to);
  op.operands[5] = from->place;
  op.operands[6] = offset;
  op.operands[7] = wanted;
  op.detail = has_size ? 1 : 0;
  op.access_log2 = static_cast<std::uint8_t>(std::countr_zero(size));
  if (from->narrow) op.flags = static_cast<std::uint16_t>(op.flags | second_narrow_address);
  return {};
}

/// Copies are done when the instruction is: nothing to commit or wait for.
Status decode_nothing(FunctionDecoder& decoder, const Instruction& i) {
  decoder.emit(&execute_nothing, i);
  return {};
}

std::uint64_t window_of(StateSpace space) {
  switch (space) {
    case StateSpace::Shared:
    case StateSpace::SharedCluster:
      return shared_window_base;
    case StateSpace::Local:
      return local_window_base;
    case StateSpace::Param:
      return parameter_window_base;
    default:
      return 0;
  }
}

Status decode_convert_address(FunctionDecoder& decoder, const Instruction& i) {
  if (ptx::size_bytes(i.type) != 8) return decoder.unsupported(i, "32-bit generic addresses");
  if (Status status = decoder.emit_selected(i, select_convert_address()); !status) return status;
  const std::uint64_t window = window_of(i.modifiers.space);
  decoder.code().code.back().immediate = i.modifiers.to_space ? 0 - window : window;
  return {};
}

Status decode_is_in_space(FunctionDecoder& decoder, const Instruction& i) {
  if (Status status = decoder.emit_selected(i, select_is_in_space()); !status) return status;
  decoder.code().code.back().immediate = window_of(i.modifiers.space);
  return {};
}

/// mov between a value and its parts; `vector` is the operand with braces.
Status decode_parts(FunctionDecoder& decoder, const Instruction& i, bool packs) {
  const Operand& vector = i.operands[packs ? 1 : 0];
  const std::uint32_t whole = ptx::size_bytes(i.type) * 8;
  const auto count = static_cast<std::uint32_t>(vector.elements.size());
  const std::uint32_t part = whole / count;
  const Execute execute = packs ? select_pack(whole, part) : select_unpack(whole, part);
  if (execute == nullptr) return decoder.unsupported(i);
  const Operand& single = i.operands[packs ? 0 : 1];
  const auto place = packs ? decoder.destination(i, single, whole, false) : decoder.source(i, single, whole);
  if (!place) return tl::unexpected(place.error());
  std::array<OperandReference, 8> places;
  places[0] = *place;
  for (std::uint32_t k = 0; k < count; ++k) {
    const auto element = decoder.element_source(vector.elements[k], part);
    if (!element) return tl::unexpected(element.error());
    places[k + 1] = *element;
  }
  MicroOp& op = decoder.emit(execute, i);
  op.operands = places;
  op.arity = static_cast<std::uint8_t>(count);
  return {};
}

Status decode_move(FunctionDecoder& decoder, const Instruction& i) {
  if (i.operands[0].kind == OperandKind::Vector) return decode_parts(decoder, i, false);
  if (i.operands[1].kind == OperandKind::Vector) return decode_parts(decoder, i, true);
  return decoder.emit_selected(i, select_move(width_of(i.type)));
}

struct Entry {
  Opcode opcode;
  DecodeFunction decode;
};
constexpr std::array entries = {
    Entry{Opcode::Mov, &decode_move},
    Entry{Opcode::Ld, &decode_load},
    Entry{Opcode::Ldu, &decode_load},
    Entry{Opcode::St, &decode_store},
    Entry{Opcode::Atom, &decode_atomic},
    Entry{Opcode::Red, &decode_atomic},
    Entry{Opcode::Cvta, &decode_convert_address},
    Entry{Opcode::Isspacep, &decode_is_in_space},
    Entry{Opcode::Prefetch, &decode_nothing},
    Entry{Opcode::Prefetchu, &decode_nothing},
    Entry{Opcode::Discard, &decode_nothing},
    Entry{Opcode::MbarrierInit, &decode_barrier_init},
    Entry{Opcode::CpAsync, &decode_copy_async},
    Entry{Opcode::CpAsyncCommitGroup, &decode_nothing},
    Entry{Opcode::CpAsyncWaitAll, &decode_nothing},
    Entry{Opcode::CpAsyncWaitGroup, &decode_nothing},
};

}  // namespace

DecodeFunction find_memory_decoder(Opcode opcode) {
  for (const Entry& entry : entries) {
    if (entry.opcode == opcode) return entry.decode;
  }
  return nullptr;
}

}  // namespace firebreak::softgpu
