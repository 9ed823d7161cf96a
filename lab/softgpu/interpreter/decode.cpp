// SPDX-License-Identifier: Apache-2.0
#include "softgpu/interpreter/decode.h"

#include <fmt/format.h>

#include "kernels/ptx/opcode_table.h"
#include "softgpu/interpreter/control_flow.h"
#include "softgpu/interpreter/generic_windows.h"
#include "softgpu/interpreter/memory.h"
#include "softgpu/interpreter/specials.h"

namespace firebreak::softgpu {

namespace {

using ptx::Instruction;
using ptx::Operand;
using ptx::OperandKind;
using ptx::SymbolKind;

constexpr std::uint32_t align_up(std::uint64_t value, std::uint32_t alignment) {
  return static_cast<std::uint32_t>((value + alignment - 1) / alignment * alignment);
}
constexpr std::uint32_t lane_array_bytes(std::uint32_t width_bits) {
  return width_bits == 1 ? 4 : align_up(std::uint64_t{width_bits} / 8 * warp_lanes, 64);
}
constexpr std::uint64_t low_bits(std::uint64_t value, std::uint32_t width_bits) {
  return width_bits >= 64 ? value : value & ((std::uint64_t{1} << width_bits) - 1);
}

ptx::Type integer_type(std::uint32_t width_bits, bool is_signed) {
  switch (width_bits) {
    case 8:
      return is_signed ? ptx::Type::S8 : ptx::Type::U8;
    case 16:
      return is_signed ? ptx::Type::S16 : ptx::Type::U16;
    case 32:
      return is_signed ? ptx::Type::S32 : ptx::Type::U32;
    default:
      return is_signed ? ptx::Type::S64 : ptx::Type::U64;
  }
}

}  // namespace

std::uint32_t width_of(ptx::Type type) { return type == ptx::Type::Pred ? 1 : ptx::size_bytes(type) * 8; }

OperandReference ConstantPool::add(std::uint32_t width_bits, std::uint64_t value) {
  if (width_bits == 1) {
    width_bits = 32;
    value = value != 0 ? all_lanes : 0;
  }
  value = low_bits(value, width_bits);
  const auto [entry, is_new] =
      offsets_.try_emplace({width_bits, value}, static_cast<std::uint32_t>(words_.size() * 8));
  if (is_new) {
    std::uint64_t word = value;
    for (std::uint32_t bits = width_bits; bits < 64; bits *= 2) word |= word << bits;
    words_.insert(words_.end(), std::max<std::size_t>(lane_array_bytes(width_bits) / 8, 1), word);
  }
  return {OperandBase::Constants, entry->second};
}

FrameLayout::FrameLayout(const ptx::Function& function) : registers(function.registers.size()) {
  std::uint32_t at = 0;
  carry = OperandReference(OperandBase::Frame, at);
  at += 4;
  for (std::size_t i = 0; i < registers.size(); ++i) {
    if (function.registers[i].type != ptx::Type::Pred) continue;
    registers[i] = OperandReference(OperandBase::Frame, at);
    at += 4;
  }
  at = align_up(at, 64);
  for (std::size_t i = 0; i < registers.size(); ++i) {
    if (function.registers[i].type == ptx::Type::Pred) continue;
    registers[i] = OperandReference(OperandBase::Frame, at);
    at += lane_array_bytes(width_of(function.registers[i].type));
  }
  registers_end = at;
  return_offset = function.is_entry ? 0 : align_up(function.parameter_bytes, 16);
  argument_offset = return_offset + align_up(function.return_parameter_bytes, 16);
  parameter_stride = argument_offset + align_up(function.argument_area_bytes, 16);
}

FunctionDecoder::FunctionDecoder(const ptx::Module& module, std::uint32_t function,
                                 const AddressLayout& addresses, ConstantPool& constants)
    : module_(module),
      function_index_(function),
      function_(module.functions[function]),
      addresses_(addresses),
      constants_(constants),
      frame_(function_),
      registers_end_(frame_.registers_end) {}

tl::unexpected<Error> FunctionDecoder::unsupported(const Instruction& instruction,
                                                   const std::string& why) const {
  const auto variants = ptx::variants_of(instruction.opcode);
  const std::string_view name = variants.empty() ? std::string_view("?") : variants.front().name;
  const char* const type = ptx::name_of(instruction.type);
  return fail(
      ErrorCode::InvalidArgument,
      fmt::format("line {}: {}{}{} in {} is not supported by the software GPU{}{}", instruction.location.line,
                  name, *type != '\0' ? "." : "", type, function_.name, why.empty() ? "" : ": ", why));
}

MicroOp& FunctionDecoder::emit(Execute execute, const Instruction& instruction) {
  const ptx::Modifiers& modifiers = instruction.modifiers;
  MicroOp op;
  op.execute = execute;
  if (instruction.guard.register_index != ptx::no_index) {
    op.guarded = true;
    op.guard = register_place(instruction.guard.register_index);
    op.guard_invert = instruction.guard.negated ? all_lanes : 0;
  }
  op.flags = static_cast<std::uint16_t>(
      (modifiers.ftz ? flush_subnormals : 0) | (modifiers.saturate ? saturate : 0) |
      (modifiers.saturate_finite ? saturate_finite : 0) | (modifiers.relu ? relu : 0) |
      (modifiers.nan ? propagate_nan : 0) | (modifiers.xorsign_abs ? xor_sign : 0) |
      (modifiers.carry_out ? carry_out : 0));
  op.rounding = modifiers.rounding;
  code_.code.push_back(op);
  code_.lines.push_back(instruction.location.line);
  return code_.code.back();
}

OperandReference FunctionDecoder::temporary(std::uint32_t width_bits) {
  std::vector<OperandReference>& made = temporaries_[width_bits];
  std::size_t& used = temporaries_used_[width_bits];
  if (used == made.size()) {
    made.emplace_back(OperandBase::Frame, registers_end_);
    registers_end_ += std::max<std::uint32_t>(lane_array_bytes(width_bits), 64);
  }
  return made[used++];
}

void FunctionDecoder::resize(const Instruction& instruction, const Widening& how) {
  Instruction conversion;
  conversion.opcode = ptx::Opcode::Cvt;
  conversion.type = integer_type(how.to_bits, how.is_signed);
  conversion.source_type = integer_type(how.from_bits, how.is_signed);
  conversion.guard = instruction.guard;
  conversion.location = instruction.location;
  MicroOp& op = emit(select_convert(conversion).execute, conversion);
  op.operands[0] = how.to;
  op.operands[1] = how.from;
}

Result<OperandReference> FunctionDecoder::special(const Instruction& instruction, ptx::SpecialRegister which,
                                                  std::uint32_t width_bits) {
  OperandReference place;
  std::uint32_t width = 0;
  if (const auto fixed = place_of(which)) {
    place = OperandReference(OperandBase::Specials, fixed->offset_bytes);
    width = fixed->width_bytes * 8;
  } else {
    const ClockOperation clock = select_clock(which);
    if (clock.execute == nullptr) return unsupported(instruction, "special register");
    width = clock.width_bits;
    place = temporary(width);
    emit(clock.execute, instruction).operands[0] = place;
  }
  if (width == width_bits || width_bits == 1) return place;
  const OperandReference resized = temporary(width_bits);
  resize(instruction, {place, resized, width, width_bits, false});
  return resized;
}

Result<std::uint64_t> FunctionDecoder::address_of(const Instruction& instruction, const ptx::Symbol& symbol,
                                                  bool& relative) {
  relative = false;
  switch (symbol.kind) {
    case SymbolKind::ModuleVariable:
      return addresses_.module_variables[symbol.index];
    case SymbolKind::Function:
      return code_base + symbol.index * code_address_step;
    case SymbolKind::Parameter:
      return function_.parameters[symbol.index].offset_bytes;
    case SymbolKind::ReturnParameter:
      return frame_.return_offset + function_.return_parameters[symbol.index].offset_bytes;
    case SymbolKind::FunctionVariable: {
      const ptx::Variable& variable = function_.variables[symbol.index];
      if (variable.space == ptx::StateSpace::Param) return frame_.argument_offset + variable.offset_bytes;
      relative = variable.space == ptx::StateSpace::Local;
      return relative ? variable.offset_bytes : addresses_.function_variables[function_index_][symbol.index];
    }
    case SymbolKind::None:
      break;
  }
  return unsupported(instruction, "a symbol of no kind");
}

Result<OperandReference> FunctionDecoder::symbol_source(const Instruction& instruction,
                                                        const Operand& operand, std::uint32_t width_bits) {
  bool relative = false;
  const auto address = address_of(instruction, operand.symbol, relative);
  if (!address) return propagate(address);
  const std::uint64_t value = *address + static_cast<std::uint64_t>(operand.offset);
  if (!relative) return constant(width_bits, value);
  const OperandReference place = temporary(width_bits);
  MicroOp& op = emit(select_local_address(width_bits).execute, instruction);
  op.operands[0] = place;
  op.immediate = value;
  return place;
}

Result<OperandReference> FunctionDecoder::source(const Instruction& instruction, const Operand& operand,
                                                 std::uint32_t width_bits) {
  switch (operand.kind) {
    case OperandKind::Register: {
      const std::uint32_t width = register_width(operand.register_index);
      const OperandReference place = register_place(operand.register_index);
      if (width == width_bits) return place;
      if (width < width_bits || width_bits == 1)
        return unsupported(instruction, "a register of the wrong width");
      const OperandReference narrowed = temporary(width_bits);
      resize(instruction, {place, narrowed, width, width_bits, false});
      return narrowed;
    }
    case OperandKind::Immediate:
      return constant(width_bits, operand.bits);
    case OperandKind::SpecialRegister:
      return special(instruction, operand.special, width_bits);
    case OperandKind::Symbol:
      return symbol_source(instruction, operand, width_bits);
    default:
      return unsupported(instruction, "an operand of this kind");
  }
}

Result<OperandReference> FunctionDecoder::element_source(const ptx::VectorElement& element,
                                                         std::uint32_t width_bits) {
  if (element.kind == OperandKind::Register) return register_place(element.register_index);
  if (element.kind == OperandKind::Sink) return temporary(width_bits);
  return constant(width_bits, element.bits);
}

Result<OperandReference> FunctionDecoder::destination(const Instruction& instruction, const Operand& operand,
                                                      std::uint32_t width_bits, bool is_signed) {
  if (operand.kind == OperandKind::Sink) return temporary(width_bits);
  const bool is_register =
      operand.kind == OperandKind::Register || operand.kind == OperandKind::PredicatePair;
  if (!is_register) return unsupported(instruction, "a destination of this kind");
  if (operand.register_index == ptx::no_index) return temporary(width_bits);
  const std::uint32_t width = register_width(operand.register_index);
  const OperandReference place = register_place(operand.register_index);
  if (width == width_bits) return place;
  if (width < width_bits || width_bits == 1) return unsupported(instruction, "a register of the wrong width");
  const OperandReference narrow = temporary(width_bits);
  widenings_.push_back({narrow, place, width_bits, width, is_signed});
  return narrow;
}

void FunctionDecoder::finish(const Instruction& instruction) {
  for (const Widening& owed : std::exchange(widenings_, {})) resize(instruction, owed);
}

Status FunctionDecoder::emit_selected(const Instruction& instruction, const Selected& selected) {
  if (!selected || selected.count != instruction.operands.size()) return unsupported(instruction);
  std::array<OperandReference, 8> places;
  std::uint8_t negated = 0;
  for (std::size_t i = 0; i < selected.count; ++i) {
    const Operand& operand = instruction.operands[i];
    const bool is_signed = ptx::kind_of(instruction.type) == ptx::TypeKind::Signed;
    const auto place = i == 0 ? destination(instruction, operand, selected.widths[i], is_signed)
                              : source(instruction, operand, selected.widths[i]);
    if (!place) return propagate(place);
    places[i] = *place;
    if (operand.negated) negated = static_cast<std::uint8_t>(negated | (1U << i));
  }
  MicroOp& op = emit(selected.execute, instruction);
  op.operands = places;
  op.negated = negated;
  return {};
}

Status FunctionDecoder::decode_instruction(const Instruction& instruction) {
  temporaries_used_.clear();
  for (const auto& find : {find_lane_decoder, find_memory_decoder, find_control_decoder, find_warp_decoder}) {
    const DecodeFunction decode_one = find(instruction.opcode);
    if (decode_one == nullptr) continue;
    Status status = decode_one(*this, instruction);
    if (status) finish(instruction);
    return status;
  }
  return unsupported(instruction);
}

void FunctionDecoder::patch_jumps(const std::vector<std::uint32_t>& starts) {
  for (const auto& [from, to] : jumps_) {
    code_.code[from].jump = static_cast<std::int32_t>(starts[to]) - static_cast<std::int32_t>(from);
  }
  for (const ptx::BranchTable& table : function_.branch_tables) {
    std::vector<std::int32_t>& targets = code_.branch_tables.emplace_back();
    for (const std::uint32_t target : table.targets)
      targets.push_back(static_cast<std::int32_t>(starts[target]));
  }
}

Result<FunctionCode> FunctionDecoder::decode() {
  code_.name = function_.name;
  std::vector<std::uint32_t> starts;
  for (const Instruction& instruction : function_.instructions) {
    starts.push_back(static_cast<std::uint32_t>(code_.code.size()));
    const Status status = decode_instruction(instruction);
    if (!status) return propagate(Result<FunctionCode>(tl::unexpected(status.error())));
  }
  starts.push_back(static_cast<std::uint32_t>(code_.code.size()));
  emit(&execute_return, Instruction{});
  patch_jumps(starts);
  for (const ptx::Register& each : function_.registers)
    code_.register_count += width_of(each.type) == 64 ? 2 : 1;
  code_.local_bytes = align_up(function_.local_frame_bytes, 16);
  code_.return_offset = frame_.return_offset;
  code_.parameter_base = align_up(registers_end_, 64);
  code_.parameter_stride = frame_.parameter_stride;
  code_.frame_bytes = code_.parameter_base + code_.parameter_stride * warp_lanes;
  return std::move(code_);
}

}  // namespace firebreak::softgpu
