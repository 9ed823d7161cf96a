// SPDX-License-Identifier: Apache-2.0
#include "kernels/ptx/operand_forms.h"

#include <cassert>

#include "kernels/ptx/literal.h"
#include "kernels/ptx/opcode_table.h"

namespace firebreak::ptx {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

Type twice_as_wide(Type type) {
  switch (type) {
    case Type::U16:
      return Type::U32;
    case Type::S16:
      return Type::S32;
    case Type::U32:
      return Type::U64;
    case Type::S32:
      return Type::S64;
    default:
      return type;
  }
}

// The mistake in one operand: a phrase that follows "must be"; nothing if it fits.
using Mismatch = std::optional<std::string>;

class OperandMatcher {
 public:
  OperandMatcher(const Function& function, const Instruction& instruction)
      : function_(function), instruction_(instruction) {}

  Mismatch check(const OperandSpec& spec, const Operand& operand) const {
    switch (spec.rule) {
      case 'm':
        return require(is_address(operand), "an address in brackets");
      case 'L':
        return require(operand.kind == OperandKind::Label, "a label");
      case 'T':
        return require(operand.kind == OperandKind::BranchTable, "a list of branch targets");
      case 'i':
        return require(operand.kind == OperandKind::Immediate && !operand.is_float_literal,
                       "an integer constant");
      case 'q':
        return predicate(operand);
      case 'c':
        return predicate(operand) && value(Type::U32, spec, operand) ? Mismatch("a .u32 or a predicate")
                                                                     : Mismatch();
      case 'n':
        return value(Type::U64, spec, operand) && value(Type::U32, spec, operand)
                   ? Mismatch("an address in a register")
                   : Mismatch();
      case 'a':
        return address_value(spec, operand);
      case 'v':
        return memory_value(spec, operand);
      case 'V':
        return fragments(operand);
      case 'M':
        return moved(spec, operand);
      default:
        return value(type_of(spec, instruction_), spec, operand);
    }
  }

 private:
  static Mismatch require(bool fits, const char* what) { return fits ? Mismatch() : Mismatch(what); }

  static bool is_address(const Operand& operand) {
    return operand.kind == OperandKind::RegisterAddress || operand.kind == OperandKind::SymbolAddress ||
           operand.kind == OperandKind::AbsoluteAddress;
  }

  Type type_of_register(std::uint32_t index) const { return function_.registers[index].type; }

  static std::string a(Type type, const OperandSpec& spec) {
    return std::string("a ") + (spec.destination ? "register" : "register or number") + " of type ." +
           name_of(type);
  }

  Mismatch predicate(const Operand& operand) const {
    const bool fits =
        operand.kind == OperandKind::Register && type_of_register(operand.register_index) == Type::Pred;
    const bool constant = operand.kind == OperandKind::Immediate && !operand.is_float_literal;
    return require(fits || constant, "a predicate");
  }

  bool register_matches(std::uint32_t index, Type wanted, bool relaxed) const {
    return register_fits(type_of_register(index), wanted, relaxed);
  }

  // An operand that is one value.
  Mismatch value(Type wanted, const OperandSpec& spec, const Operand& operand) const {
    bool fits = false;
    switch (operand.kind) {
      case OperandKind::Register:
        fits = register_matches(operand.register_index, wanted, spec.relaxed) &&
               (!operand.negated || (wanted == Type::Pred && !spec.destination));
        break;
      case OperandKind::Immediate:
        fits = !spec.destination && literal_fits(operand.is_float_literal, operand.is_single_literal, wanted);
        break;
      case OperandKind::Sink:
        fits = spec.destination;
        break;
      case OperandKind::PredicatePair:
        fits = spec.pair && pair_matches(wanted, operand);
        break;
      case OperandKind::SpecialRegister:
        fits = !spec.destination && spec.relaxed && kind_of(wanted) != TypeKind::Float;
        break;
      default:
        break;
    }
    return fits ? Mismatch() : Mismatch(a(wanted, spec));
  }

  bool pair_matches(Type wanted, const Operand& operand) const {
    const bool first =
        operand.register_index == no_index || register_matches(operand.register_index, wanted, false);
    const bool second = operand.second_register_index == no_index ||
                        register_matches(operand.second_register_index, Type::Pred, false);
    return first && second;
  }

  Mismatch address_value(const OperandSpec& spec, const Operand& operand) const {
    return operand.kind == OperandKind::Symbol ? Mismatch() : value(instruction_.type, spec, operand);
  }

  Mismatch memory_value(const OperandSpec& spec, const Operand& operand) const {
    OperandSpec element_spec = spec;
    const bool is_atomic = instruction_.opcode == Opcode::Atom || instruction_.opcode == Opcode::Red;
    element_spec.relaxed = !is_atomic;
    const Type type = instruction_.type;
    if (operand.kind == OperandKind::SpecialRegister) return a(type, spec);
    if (operand.kind != OperandKind::Vector) return value(type, element_spec, operand);
    for (const VectorElement& element : operand.elements)
      if (!element_fits(element, type, element_spec))
        return "a vector whose elements are ." + std::string(name_of(type));
    return {};
  }

  bool element_fits(const VectorElement& element, Type wanted, const OperandSpec& spec) const {
    switch (element.kind) {
      case OperandKind::Register:
        return register_matches(element.register_index, wanted, spec.relaxed);
      case OperandKind::Immediate:
        return !spec.destination && literal_fits(element.is_float_literal, element.is_single_literal, wanted);
      default:
        return spec.destination;
    }
  }

  // A matrix fragment is 32 or 64 bits; which follows from shape and type and is checked with the vectors.
  Mismatch fragments(const Operand& operand) const {
    if (operand.kind != OperandKind::Vector) return "a vector of registers";
    for (const VectorElement& element : operand.elements) {
      const bool is_register = element.kind == OperandKind::Register;
      if (!is_register || size_bytes(type_of_register(element.register_index)) < 4)
        return "a vector of registers of 32 bits or more";
    }
    return {};
  }

  Mismatch moved(const OperandSpec& spec, const Operand& operand) const {
    const Type type = instruction_.type;
    const bool whole = kind_of(type) == TypeKind::Bits || kind_of(type) == TypeKind::Unsigned ||
                       kind_of(type) == TypeKind::Signed;
    switch (operand.kind) {
      case OperandKind::Vector:
        return packed(spec, operand);
      case OperandKind::Symbol:
        if (spec.destination) return a(type, spec);
        return require(whole && size_bytes(type) >= 4, "something else, for an address needs 32 or 64 bits");
      case OperandKind::SpecialRegister: {
        const bool is_predicate = operand.special == SpecialRegister::IsExplicitCluster;
        return require(!spec.destination && is_predicate == (type == Type::Pred) && (whole || is_predicate),
                       "of the special register's type");
      }
      default:
        return value(type, spec, operand);
    }
  }

  // {a, b} as one value: equal parts that fill it.
  Mismatch packed(const OperandSpec& spec, const Operand& operand) const {
    const std::string wanted =
        std::string("a vector whose equal parts fill a .") + name_of(instruction_.type);
    if (kind_of(instruction_.type) != TypeKind::Bits) return wanted;
    const auto count = static_cast<std::uint32_t>(operand.elements.size());
    const std::uint32_t part = size_bytes(instruction_.type) / count;
    for (const VectorElement& element : operand.elements) {
      const bool fits =
          element.kind == OperandKind::Register ? size_bytes(type_of_register(element.register_index)) == part
          : element.kind == OperandKind::Immediate ? !spec.destination && !element.is_float_literal
                                                   : spec.destination;
      if (!fits) return wanted;
    }
    return count * part == size_bytes(instruction_.type) && count > 1 ? Mismatch() : Mismatch(wanted);
  }

  const Function& function_;
  const Instruction& instruction_;
};

std::string describe(const Function& function, const Operand& operand) {
  switch (operand.kind) {
    case OperandKind::Register: {
      const Register& found = function.registers[operand.register_index];
      return quoted(found.name) + " (." + name_of(found.type) + ")";
    }
    case OperandKind::Immediate:
      return operand.is_float_literal ? "a floating-point number" : "an integer";
    case OperandKind::Vector:
      return "this vector";
    case OperandKind::Symbol:
      return "a symbol";
    case OperandKind::Label:
      return "a label";
    case OperandKind::BranchTable:
      return "a list of branch targets";
    case OperandKind::SpecialRegister:
      return "a special register";
    case OperandKind::Sink:
      return "'_'";
    case OperandKind::PredicatePair:
      return "a pair";
    default:
      return "an address";
  }
}

std::size_t required_operands(const std::vector<OperandSpec>& specs) {
  std::size_t count = 0;
  while (count < specs.size() && !specs[count].optional) ++count;
  return count;
}

Diagnostic wrong_count(const Instruction& instruction, std::size_t lowest, std::size_t highest) {
  const std::string range =
      std::to_string(lowest) + (lowest == highest ? "" : " to " + std::to_string(highest));
  return {instruction.location, short_name(instruction) + " takes " + range + " operands, not " +
                                    std::to_string(instruction.operands.size())};
}

}  // namespace

std::vector<OperandSpec> parse_form(std::string_view form) {
  std::vector<OperandSpec> specs;
  bool optional = false;
  for (const std::string_view word : split(form, ' ')) {
    OperandSpec spec;
    for (const char c : word) {
      if (c == '?')
        optional = true;
      else if (c == '=')
        spec.destination = true;
      else if (c == '~')
        spec.relaxed = true;
      else if (c == '|')
        spec.pair = true;
      else
        spec.rule = c;
    }
    spec.optional = optional;
    specs.push_back(spec);
  }
  return specs;
}

Type type_of(const OperandSpec& spec, const Instruction& instruction) {
  switch (spec.rule) {
    case '0':
    case 'v':
    case 'a':
    case 'M':
      return instruction.type;
    case '1':
      return instruction.source_type;
    case '2':
      return instruction.more_types[0];
    case '3':
      return instruction.more_types[1];
    case 'w':
      return instruction.modifiers.half == Half::Wide ? twice_as_wide(instruction.type) : instruction.type;
    case 'u':
    case 'c':
      return Type::U32;
    case 's':
      return Type::S32;
    case 'l':
    case 'n':
    case 'i':
      return Type::U64;
    case 'b':
      return Type::B32;
    case 'p':
    case 'q':
      return Type::Pred;
    default:
      return Type::None;
  }
}

bool register_fits(Type actual, Type wanted, bool relaxed) {
  if (actual == Type::Pred || wanted == Type::Pred) return actual == wanted;
  const TypeKind have = kind_of(actual);
  const TypeKind want = kind_of(wanted);
  const bool have_integer = have == TypeKind::Unsigned || have == TypeKind::Signed;
  const bool want_integer = want == TypeKind::Unsigned || want == TypeKind::Signed;
  if (size_bytes(actual) == size_bytes(wanted))
    return have == TypeKind::Bits || want == TypeKind::Bits || (have_integer && want_integer) ||
           actual == wanted;
  if (!relaxed || size_bytes(actual) < size_bytes(wanted)) return false;
  return want == TypeKind::Bits || have == TypeKind::Bits || (have_integer && want_integer);
}

FormMatch match_operands(const Function& function, const Instruction& instruction) {
  const InstructionVariant* variant = find_variant(
      instruction.opcode,
      {instruction.type, instruction.source_type, instruction.more_types[0], instruction.more_types[1]});
  assert(variant != nullptr);
  const OperandMatcher matcher(function, instruction);
  const std::size_t count = instruction.operands.size();
  Diagnostic problem{instruction.location, {}};
  if (variant->operands.empty()) {
    if (count == 0) return std::vector<OperandSpec>{};
    return wrong_count(instruction, 0, 0);
  }
  for (const std::string_view form : split(variant->operands, '/')) {
    std::vector<OperandSpec> specs = parse_form(form);
    if (count < required_operands(specs) || count > specs.size()) {
      if (problem.message.empty()) problem = wrong_count(instruction, required_operands(specs), specs.size());
      continue;
    }
    bool fits = true;
    for (std::size_t i = 0; i < count && fits; ++i) {
      const Operand& operand = instruction.operands[i];
      const Mismatch mismatch = matcher.check(specs[i], operand);
      fits = !mismatch;
      if (mismatch)
        problem = {operand.location, "operand " + std::to_string(i + 1) + " of " + short_name(instruction) +
                                         " must be " + *mismatch + ", not " + describe(function, operand)};
    }
    if (fits) return specs;
  }
  return problem;
}

std::string short_name(const Instruction& instruction) {
  if (variants_of(instruction.opcode).empty()) return "an instruction of no known kind";
  std::string name(variants_of(instruction.opcode).front().name);
  for (const Type type : {instruction.type, instruction.source_type})
    if (type != Type::None) name += std::string(".") + name_of(type);
  return quoted(name);
}

}  // namespace firebreak::ptx
