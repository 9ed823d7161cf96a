// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "kernels/access/thread_values.h"
#include "kernels/ptx/memory_effect.h"

namespace firebreak::access {
namespace {

using ptx::Instruction;
using ptx::Opcode;
using ptx::Operand;
using ptx::OperandKind;
using ptx::SpecialRegister;
using ptx::StateSpace;
using ptx::SymbolKind;
using ptx::Type;
using ptx::TypeKind;

std::uint8_t width_of(Type type) {
  return type == Type::Pred ? 1 : static_cast<std::uint8_t>(ptx::size_bytes(type) * 8);
}
bool is_signed(Type type) { return ptx::kind_of(type) == TypeKind::Signed; }
// True for what arithmetic here is about: one integer of at most 64 bits.
bool is_integer(Type type) {
  const TypeKind kind = ptx::kind_of(type);
  const bool is_packed = type == Type::U16x2 || type == Type::S16x2;
  return (kind == TypeKind::Bits || kind == TypeKind::Unsigned || kind == TypeKind::Signed) && !is_packed &&
         ptx::size_bytes(type) <= 8;
}

// The same when a launch is repeated. Others (clocks, where it runs) are not, or nobody knows.
bool stays_the_same(SpecialRegister special) {
  switch (special) {
    case SpecialRegister::Laneid:
    case SpecialRegister::LanemaskEq:
    case SpecialRegister::LanemaskLe:
    case SpecialRegister::LanemaskLt:
    case SpecialRegister::LanemaskGe:
    case SpecialRegister::LanemaskGt:
    case SpecialRegister::DynamicSmemSize:
    case SpecialRegister::TotalSmemSize:
    case SpecialRegister::AggrSmemSize:
      return true;
    default:
      return special >= SpecialRegister::TidX && special <= SpecialRegister::IsExplicitCluster;
  }
}

// True when the modifiers' meaning is known here. With others the result is not known.
bool is_plain(const ptx::Modifiers& modifiers) { return !modifiers.saturate && !modifiers.relu; }

class Translator {
 public:
  Translator(ValueBuilder& builder, const Instruction& instruction)
      : builder_(builder), pool_(builder.pool()), instruction_(instruction) {}

  void run() {
    note_hazards();
    note_accesses();
    const ExpressionIndex result = compute();
    if (result != no_expression)
      assign(instruction_.operands[0], result, is_signed(instruction_.type));
    else if (!done_)
      forget_results();
  }

 private:
  const Operand& operand(std::size_t i) const { return instruction_.operands[i]; }

  ExpressionIndex resize(ExpressionIndex value, std::uint8_t width_bits, bool sign) {
    const std::uint8_t from = pool_[value].width_bits;
    if (from == width_bits) return value;
    if (width_bits < from) return pool_.unary(Operation::Truncate, width_bits, value);
    return pool_.unary(sign ? Operation::SignExtend : Operation::ZeroExtend, width_bits, value);
  }

  ExpressionIndex symbol_address(const Operand& from) {
    const ptx::Symbol symbol = from.symbol;
    ExpressionIndex base = no_expression;
    if (symbol.kind == SymbolKind::ModuleVariable) {
      const bool is_shared = builder_.module().variables[symbol.index].space == StateSpace::Shared;
      base = pool_.leaf(is_shared ? Operation::SharedAddress : Operation::Variable, 64, symbol.index);
    } else if (symbol.kind == SymbolKind::FunctionVariable) {
      const StateSpace space = builder_.kernel().variables[symbol.index].space;
      const bool is_static = space == StateSpace::Global || space == StateSpace::Const;
      if (is_static) return unknown(64);
      // The module's variables in .shared are counted apart from the function's.
      base = space == StateSpace::Shared
                 ? pool_.leaf(Operation::SharedAddress, 64, ~std::uint64_t{symbol.index})
                 : pool_.leaf(Operation::LocalAddress, 64, symbol.index);
    } else if (symbol.kind == SymbolKind::Parameter) {
      base = pool_.leaf(Operation::LocalAddress, 64, ~std::uint64_t{symbol.index});
    } else {
      return unknown(64);
    }
    return plus(base, from.offset);
  }

  // A part of what the instruction makes.
  ExpressionIndex unknown(std::uint8_t width_bits) {
    const bool has_result = ptx::writes_first_operand(instruction_) && !instruction_.operands.empty() &&
                            operand(0).kind == OperandKind::Register;
    return pool_.unknown(width_bits, UnknownReason::Computed,
                         {builder_.block(), has_result ? operand(0).register_index : ptx::no_index});
  }

  ExpressionIndex plus(ExpressionIndex base, std::int64_t offset) {
    const std::uint8_t width = pool_[base].width_bits;
    return pool_.binary(Operation::Add, width, false, base,
                        pool_.constant(width, static_cast<std::uint64_t>(offset)));
  }

  ExpressionIndex value_of(const Operand& from, std::uint8_t width_bits) {
    switch (from.kind) {
      case OperandKind::Register: {
        const ExpressionIndex value = resize(builder_.read(from.register_index), width_bits, false);
        return from.negated ? pool_.negate_predicate(value) : value;
      }
      case OperandKind::Immediate:
        return pool_.constant(width_bits, from.bits);
      case OperandKind::SpecialRegister:
        return resize(pool_.leaf(Operation::Special, 32, static_cast<std::uint64_t>(from.special)),
                      width_bits, false);
      case OperandKind::Symbol:
        return resize(symbol_address(from), width_bits, false);
      case OperandKind::Vector:
        return packed(from, width_bits);
      default:
        return unknown(width_bits);
    }
  }
  ExpressionIndex value_of(std::size_t i, std::uint8_t width_bits) {
    return value_of(operand(i), width_bits);
  }

  // {low, high} as one value: where the upper parts are zero.
  ExpressionIndex packed(const Operand& from, std::uint8_t width_bits) {
    for (std::size_t i = 1; i < from.elements.size(); ++i)
      if (from.elements[i].kind != OperandKind::Immediate || from.elements[i].bits != 0)
        return unknown(width_bits);
    const ptx::VectorElement& low = from.elements.front();
    if (low.kind != OperandKind::Register) return unknown(width_bits);
    return resize(builder_.read(low.register_index), width_bits, false);
  }

  void assign_register(std::uint32_t index, ExpressionIndex value, bool sign) {
    if (index == ptx::no_index) return;
    builder_.write(index, resize(value, builder_.width_of(index), sign));
  }

  void assign(const Operand& to, ExpressionIndex value, bool sign) {
    done_ = true;
    if (to.kind == OperandKind::Register) return assign_register(to.register_index, value, sign);
    if (to.kind == OperandKind::Vector) return unpack(to, value);
    if (to.kind != OperandKind::PredicatePair) return;
    assign_register(to.register_index, value, sign);
    if (to.second_register_index == ptx::no_index) return;
    const bool is_predicate =
        pool_[value].width_bits == 1 && builder_.width_of(to.second_register_index) == 1;
    builder_.write(to.second_register_index, is_predicate
                                                 ? pool_.negate_predicate(value)
                                                 : unknown(builder_.width_of(to.second_register_index)));
  }

  void unpack(const Operand& to, ExpressionIndex value) {
    const std::uint8_t whole = pool_[value].width_bits;
    const auto part = static_cast<std::uint8_t>(whole / to.elements.size());
    for (std::size_t i = 0; i < to.elements.size(); ++i) {
      if (to.elements[i].kind != OperandKind::Register) continue;
      const ExpressionIndex shifted =
          i == 0 ? value
                 : pool_.binary(Operation::ShiftRight, whole, false, value, pool_.constant(32, i * part));
      assign_register(to.elements[i].register_index, resize(shifted, part, false), false);
    }
  }

  void forget(std::uint32_t index) {
    if (index == ptx::no_index) return;
    const bool is_load = instruction_.opcode == Opcode::Ld || instruction_.opcode == Opcode::Ldu ||
                         instruction_.opcode == Opcode::Atom;
    builder_.write(index, pool_.unknown(builder_.width_of(index),
                                        is_load ? UnknownReason::Loaded : UnknownReason::Computed,
                                        {builder_.block(), index}));
  }

  void forget_operand(const Operand& to) {
    if (to.kind == OperandKind::Register || to.kind == OperandKind::PredicatePair) {
      forget(to.register_index);
      forget(to.second_register_index);
    }
    for (const ptx::VectorElement& element : to.elements)
      if (element.kind == OperandKind::Register) forget(element.register_index);
  }

  // Nothing is known of what the instruction writes.
  void forget_results() {
    if (instruction_.opcode == Opcode::Opaque) {
      for (const Operand& each : instruction_.operands) forget_operand(each);
    } else if (instruction_.opcode == Opcode::Call) {
      for (const Operand& each : builder_.kernel().calls[instruction_.call_index].returns)
        forget_operand(each);
    } else if (ptx::writes_first_operand(instruction_) && !instruction_.operands.empty()) {
      forget_operand(operand(0));
    }
  }

  // Notes what makes the whole kernel unknown.
  void note_hazards() {
    for (const Operand& each : instruction_.operands)
      if (each.kind == OperandKind::SpecialRegister && !stays_the_same(each.special))
        builder_.refuse(instruction_, "it reads a clock or where it runs, which differs from run to run");
    if (instruction_.opcode == Opcode::Call &&
        !never_returns(builder_.module(), builder_.kernel(), instruction_))
      builder_.refuse(instruction_, "it calls " + callee_name());
    if (instruction_.opcode != Opcode::Opaque) return;
    const ptx::OpaqueInstruction& opaque = builder_.kernel().opaque_instructions[instruction_.opaque_index];
    if (opaque.may_jump || (opaque.has_address && !opaque.only_shared))
      builder_.refuse(instruction_, "the instruction '" + opaque.text + "' is not known");
  }

  std::string callee_name() const {
    const std::uint32_t callee = builder_.kernel().calls[instruction_.call_index].function_index;
    return callee == ptx::no_index ? "through a pointer"
                                   : "the function " + builder_.module().functions[callee].name;
  }

  ExpressionIndex address_of(const Operand& from) {
    switch (from.kind) {
      case OperandKind::RegisterAddress:
        return resize(plus(builder_.read(from.register_index), from.offset), 64, false);
      case OperandKind::SymbolAddress:
        return symbol_address(from);
      default:
        return pool_.constant(64, static_cast<std::uint64_t>(from.offset));
    }
  }

  void note_accesses() {
    for (const ptx::MemoryEffect& effect : ptx::memory_effects(instruction_)) {
      const bool is_memory = effect.space == StateSpace::None || effect.space == StateSpace::Global;
      if (effect.kind == ptx::EffectKind::None || !is_memory || effect.operand == ptx::no_index) continue;
      MemoryAccess access;
      access.instruction = builder_.instruction();
      access.block = builder_.block();
      access.kind = effect.kind;
      access.operand = effect.operand;
      access.space = effect.space;
      access.width_bytes = ptx::access_bytes(instruction_);
      access.address = address_of(operand(effect.operand));
      access.predicate = builder_.predicate();
      builder_.accesses().push_back(access);
    }
  }

  ExpressionIndex binary(Operation operation) {
    const Type type = instruction_.type;
    if (!is_integer(type) || !is_plain(instruction_.modifiers)) return no_expression;
    const std::uint8_t width = width_of(type);
    const bool shifts = operation == Operation::ShiftLeft || operation == Operation::ShiftRight;
    const ExpressionIndex a = value_of(1, width);
    const ExpressionIndex b = value_of(2, shifts ? std::uint8_t{32} : width);
    return pool_.binary(operation, width, is_signed(type), a, b);
  }

  ExpressionIndex logic(Operation operation) {
    const std::uint8_t width = width_of(instruction_.type);
    return pool_.binary(operation, width, false, value_of(1, width), value_of(2, width));
  }

  ExpressionIndex multiply(bool adds) {
    const Type type = instruction_.type;
    if (!is_integer(type) || !is_plain(instruction_.modifiers)) return no_expression;
    const std::uint8_t width = width_of(type);
    const bool sign = is_signed(type);
    const bool is_wide = instruction_.modifiers.half == ptx::Half::Wide;
    const auto whole = static_cast<std::uint8_t>(is_wide ? width * 2 : width);
    const ExpressionIndex a = resize(value_of(1, width), whole, sign);
    const ExpressionIndex b = resize(value_of(2, width), whole, sign);
    const bool is_high = instruction_.modifiers.half == ptx::Half::Hi;
    const ExpressionIndex product =
        pool_.binary(is_high ? Operation::MultiplyHigh : Operation::Multiply, whole, sign, a, b);
    return adds ? pool_.binary(Operation::Add, whole, false, product, value_of(3, whole)) : product;
  }

  ExpressionIndex convert() {
    const Type to = instruction_.type;
    const Type from = instruction_.source_type;
    if (!is_integer(to) || !is_integer(from) || !is_plain(instruction_.modifiers)) return no_expression;
    return resize(value_of(1, width_of(from)), width_of(to), is_signed(from));
  }

  // A generic address is another number than the one in shared or local memory.
  ExpressionIndex convert_address() {
    const std::uint8_t width = width_of(instruction_.type);
    const ExpressionIndex address = value_of(1, width);
    const StateSpace space = instruction_.modifiers.space;
    if (space == StateSpace::Global || space == StateSpace::Const) return address;
    const ExpressionIndex window = pool_.leaf(Operation::Window, width, static_cast<std::uint64_t>(space));
    return pool_.binary(instruction_.modifiers.to_space ? Operation::Subtract : Operation::Add, width, false,
                        address, window);
  }

  ExpressionIndex compare() {
    using ptx::Compare;
    const Type type = instruction_.type;
    if (!is_integer(type)) return unknown(1);
    bool sign = is_signed(type);
    Compare how = instruction_.modifiers.compare;
    constexpr std::array<std::pair<Compare, Compare>, 4> unsigned_names{{{Compare::Lo, Compare::Lt},
                                                                         {Compare::Ls, Compare::Le},
                                                                         {Compare::Hi, Compare::Gt},
                                                                         {Compare::Hs, Compare::Ge}}};
    for (const auto& [name, meaning] : unsigned_names) {
      if (how != name) continue;
      how = meaning;
      sign = false;
    }
    const std::uint8_t width = width_of(type);
    return pool_.compare(how, sign, width, value_of(1, width), value_of(2, width));
  }

  ExpressionIndex set_predicate() {
    ExpressionIndex result = compare();
    const ptx::BoolOp combine = instruction_.modifiers.bool_op;
    if (combine == ptx::BoolOp::None) return result;
    const ExpressionIndex other = value_of(3, 1);
    const auto with = [&](ExpressionIndex first) {
      const Operation operation = combine == ptx::BoolOp::And  ? Operation::And
                                  : combine == ptx::BoolOp::Or ? Operation::Or
                                                               : Operation::Xor;
      return pool_.binary(operation, 1, false, first, other);
    };
    const Operand& to = operand(0);
    if (to.kind == OperandKind::PredicatePair && to.second_register_index != ptx::no_index) {
      assign_register(to.second_register_index, with(pool_.negate_predicate(result)), false);
      assign_register(to.register_index, with(result), false);
      done_ = true;
      return no_expression;
    }
    return with(result);
  }

  ExpressionIndex extract_field() {
    const Type type = instruction_.type;
    if (is_signed(type) || operand(2).kind != OperandKind::Immediate ||
        operand(3).kind != OperandKind::Immediate || operand(2).bits >= width_of(type) ||
        operand(3).bits >= width_of(type))
      return no_expression;
    const std::uint8_t width = width_of(type);
    const ExpressionIndex shifted = pool_.binary(Operation::ShiftRight, width, false, value_of(1, width),
                                                 pool_.constant(32, operand(2).bits));
    return pool_.binary(Operation::And, width, false, shifted,
                        pool_.constant(width, (std::uint64_t{1} << operand(3).bits) - 1));
  }

  // Parameters alone are known; they stand in the launch.
  ExpressionIndex load() {
    const Operand& from = operand(1);
    const bool is_parameter = instruction_.modifiers.space == StateSpace::Param &&
                              from.kind == OperandKind::SymbolAddress &&
                              from.symbol.kind == SymbolKind::Parameter;
    if (!is_parameter || width_of(instruction_.type) > 64) return no_expression;
    const ptx::Parameter& parameter = builder_.kernel().parameters[from.symbol.index];
    const std::uint64_t start = parameter.offset_bytes + static_cast<std::uint64_t>(from.offset);
    const std::uint8_t width = width_of(instruction_.type);
    const std::size_t count =
        operand(0).kind == OperandKind::Vector ? operand(0).elements.size() : std::size_t{1};
    const std::uint64_t bytes = std::uint64_t{width} / 8 * count;
    if (start + bytes > builder_.kernel().parameter_bytes || start + bytes < start) return no_expression;
    if (operand(0).kind != OperandKind::Vector) return pool_.leaf(Operation::Parameter, width, start);
    for (std::size_t i = 0; i < count; ++i)
      if (operand(0).elements[i].kind == OperandKind::Register)
        assign_register(operand(0).elements[i].register_index,
                        pool_.leaf(Operation::Parameter, width, start + i * width / 8),
                        is_signed(instruction_.type));
    done_ = true;
    return no_expression;
  }

  ExpressionIndex move() {
    if (instruction_.type == Type::B128) return no_expression;
    return value_of(1, width_of(instruction_.type));
  }

  ExpressionIndex invert() {
    const std::uint8_t width = width_of(instruction_.type);
    if (width == 1) return pool_.negate_predicate(value_of(1, 1));
    return pool_.binary(Operation::Subtract, width, false, pool_.constant(width, ~std::uint64_t{0}),
                        value_of(1, width));
  }

  ExpressionIndex negate() {
    if (!is_integer(instruction_.type)) return no_expression;
    const std::uint8_t width = width_of(instruction_.type);
    return pool_.binary(Operation::Subtract, width, false, pool_.constant(width, 0), value_of(1, width));
  }

  ExpressionIndex choose() {
    if (width_of(instruction_.type) > 64) return no_expression;
    const std::uint8_t width = width_of(instruction_.type);
    return pool_.select(value_of(3, 1), value_of(1, width), value_of(2, width));
  }

  // The value of operand 0; no_expression: not modelled, or (done_) assigned already.
  ExpressionIndex compute() {
    switch (instruction_.opcode) {
      case Opcode::Add:
        return binary(Operation::Add);
      case Opcode::Sub:
        return binary(Operation::Subtract);
      case Opcode::Mul:
        return multiply(false);
      case Opcode::Mad:
        return multiply(true);
      case Opcode::Div:
        return binary(Operation::Divide);
      case Opcode::Rem:
        return binary(Operation::Remainder);
      case Opcode::Min:
        return binary(Operation::Minimum);
      case Opcode::Max:
        return binary(Operation::Maximum);
      case Opcode::Shl:
        return binary(Operation::ShiftLeft);
      case Opcode::Shr:
        return binary(Operation::ShiftRight);
      case Opcode::And:
        return logic(Operation::And);
      case Opcode::Or:
        return logic(Operation::Or);
      case Opcode::Xor:
        return logic(Operation::Xor);
      default:
        return compute_other();
    }
  }

  ExpressionIndex compute_other() {
    switch (instruction_.opcode) {
      case Opcode::Not:
        return invert();
      case Opcode::Neg:
        return negate();
      case Opcode::Cvt:
        return convert();
      case Opcode::Cvta:
        return convert_address();
      case Opcode::Mov:
        return move();
      case Opcode::Selp:
        return choose();
      case Opcode::Setp:
        return set_predicate();
      case Opcode::Bfe:
        return extract_field();
      case Opcode::Ld:
        return load();
      default:
        return no_expression;
    }
  }

  ValueBuilder& builder_;
  ExpressionPool& pool_;
  const Instruction& instruction_;
  bool done_ = false;
};

}  // namespace

void translate(ValueBuilder& builder, const ptx::Instruction& instruction) {
  Translator(builder, instruction).run();
}

}  // namespace firebreak::access
