// SPDX-License-Identifier: Apache-2.0
/// Which operands an instruction takes, from the opcode table's small language. Internal to src/kernels/ptx.
///
/// A form is a list of operands with blanks between them, alternatives are separated by '/'. An operand is
///   [?] it and all after it may be left out    [=] it is written    [~] a wider register will do    a rule
///   [|] or d|p
/// and the rules are
///   0 1 2 3  a register, or a number if it is read, of the instruction's type of that place
///   w        of type 0, twice as wide for .wide           u s l b p   of .u32, .s32, .u64, .b32, .pred
///   q        a predicate, perhaps negated                 c           a .u32 or a predicate
///   v        of type 0 and wider, or a vector of it       V           a vector of fragments of a matrix
///   M        what mov takes                               a           of type 0, or a symbol
///   n        an address, in a register of 32 or 64 bits   m           [address]
///   i        an integer constant                          L T         a label, a branch table
#pragma once

#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/ptx/diagnostic.h"
#include "kernels/ptx/ir.h"

namespace firebreak::ptx {

struct OperandSpec {
  bool destination = false;
  bool optional = false;
  bool relaxed = false;
  bool pair = false;
  char rule = '0';
};

/// One alternative of a form.
std::vector<OperandSpec> parse_form(std::string_view form);

/// The type that an operand of this rule has in this instruction; None for addresses, labels and matrix
/// fragments.
Type type_of(const OperandSpec& spec, const Instruction& instruction);

/// May a register of type `actual` stand where an instruction works on `wanted`? Relaxed: where it may be
/// wider.
bool register_fits(Type actual, Type wanted, bool relaxed);

/// The alternative that the operands of an instruction match (not for call), or what is wrong with the
/// nearest one. Register indices and the opcode's types must be valid.
using FormMatch = std::variant<std::vector<OperandSpec>, Diagnostic>;
FormMatch match_operands(const Function& function, const Instruction& instruction);

/// "add.f32" and what else is needed to know the instruction in a message.
std::string short_name(const Instruction& instruction);

}  // namespace firebreak::ptx
