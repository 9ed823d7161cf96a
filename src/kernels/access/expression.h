// SPDX-License-Identifier: Apache-2.0
/// The value of a register as an expression over the launch: hash-consed, so that equal values have one
/// index. Internal to src/kernels/access.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/ptx/ir.h"

namespace firebreak::access {

/// An index into ExpressionPool. It means a number modulo two to the power of its width.
using ExpressionIndex = std::uint32_t;
inline constexpr ExpressionIndex no_expression = ptx::no_index;

enum class Operation : std::uint8_t {
  Constant,       ///< `value`
  Parameter,      ///< the bytes of the parameter block at `value`, as many as the width has
  Special,        ///< `value` is the ptx::SpecialRegister
  Variable,       ///< the address of ptx::Module::variables[value]
  SharedAddress,  ///< address of something in .shared
  LocalAddress,   ///< address of something in .local or in .param, of this thread alone
  Window,         ///< generic address at which the ptx::StateSpace `value` begins
  Unknown,        ///< one value that nothing is known of; `value` counts them, `reason` says why
  Phi,            ///< value where paths meet: `value` indexes ExpressionPool::phis
  LoopCounter,    ///< counter of the loop `value`: 0 in the first iteration
  Add,
  Subtract,
  Multiply,
  MultiplyHigh,  ///< the upper half of the product
  Divide,
  Remainder,
  ShiftLeft,
  ShiftRight,
  And,
  Or,
  Xor,
  Minimum,
  Maximum,
  SignExtend,
  ZeroExtend,
  Truncate,
  Select,   ///< operand 0, a predicate: operand 1, else operand 2
  Compare,  ///< a predicate; `compare` says which
};

/// Why nothing is known of a value.
enum class UnknownReason : std::uint8_t {
  None,
  Loaded,     ///< value that came from memory
  Computed,   ///< value of an instruction that is not modelled
  Loop,       ///< value that changes in a loop in a way that is not modelled
  Wrapped,    ///< arithmetic may wrap around
  Undefined,  ///< read before it is written
};

struct Expression {
  Operation operation = Operation::Constant;
  std::uint8_t width_bits = 0;          ///< 1: a predicate. Of Compare: see operand_width_bits
  std::uint8_t operand_width_bits = 0;  ///< Compare, SignExtend, ZeroExtend: of what goes in
  bool is_signed = false;
  ptx::Compare compare = ptx::Compare::None;  ///< Eq, Ne, Lt, Le, Gt, Ge
  UnknownReason reason = UnknownReason::None;
  std::array<ExpressionIndex, 3> operands{no_expression, no_expression, no_expression};
  std::uint64_t value = 0;

  bool operator==(const Expression&) const = default;
};

/// The source of a value of which nothing is known.
struct UnknownSource {
  std::uint32_t block = ptx::no_index;  ///< block: the value is a new one each time that comes round;
                                        ///< no_index: any time
  std::uint32_t register_index =
      ptx::no_index;  ///< register that holds it, or what it is a part of; no_index: none does
};

/// Values that meet at the head of a block.
struct PhiNode {
  std::uint32_t block = 0;
  ExpressionIndex self = no_expression;   ///< the expression of Operation::Phi
  std::vector<ExpressionIndex> operands;  ///< operands by predecessor of the block
  bool joins_entries = false;             ///< true for a loop's header, but only what comes in from outside
  /// The value that it comes to, where that is known: the same on all paths, or an induction. no_expression:
  /// not known.
  ExpressionIndex replacement = no_expression;
};

/// The expressions of a kernel. Indices stay valid; an operand's index is smaller than its user's, but for
/// those of phis.
class ExpressionPool {
 public:
  const Expression& operator[](ExpressionIndex index) const { return nodes_[index]; }
  std::size_t size() const { return nodes_.size(); }

  ExpressionIndex constant(std::uint8_t width_bits, std::uint64_t value);
  ExpressionIndex leaf(Operation operation, std::uint8_t width_bits, std::uint64_t value);
  /// A new one each time.
  ExpressionIndex unknown(std::uint8_t width_bits, UnknownReason reason, UnknownSource source);
  ExpressionIndex phi(std::uint8_t width_bits, std::uint32_t block);
  ExpressionIndex unary(Operation operation, std::uint8_t width_bits, ExpressionIndex a);
  ExpressionIndex binary(Operation operation, std::uint8_t width_bits, bool is_signed, ExpressionIndex a,
                         ExpressionIndex b);
  ExpressionIndex select(ExpressionIndex predicate, ExpressionIndex yes, ExpressionIndex no);
  ExpressionIndex compare(ptx::Compare how, bool is_signed, std::uint8_t operand_width_bits,
                          ExpressionIndex a, ExpressionIndex b);
  ExpressionIndex negate_predicate(ExpressionIndex predicate);

  /// Follows the replacements of phis.
  ExpressionIndex resolve(ExpressionIndex index) const;
  bool is_constant(ExpressionIndex index, std::uint64_t value) const;
  /// Returns the source of an expression of Operation::Unknown.
  UnknownSource source_of(const Expression& unknown) const { return unknown_sources_[unknown.value]; }
  /// True when it has as much as a kernel may have. Whoever sees that gives up.
  bool is_full() const { return nodes_.size() > most_expressions; }

  std::vector<PhiNode> phis;

 private:
  struct Hash {
    std::size_t operator()(const Expression& node) const;
  };
  static constexpr std::size_t most_expressions = 400'000;

  ExpressionIndex intern(const Expression& node);
  ExpressionIndex simplify(const Expression& node);
  ExpressionIndex negate(ExpressionIndex predicate, int depth);

  std::vector<Expression> nodes_;
  std::unordered_map<Expression, ExpressionIndex, Hash> index_;
  std::unordered_map<ExpressionIndex, ExpressionIndex> negations_;
  std::vector<UnknownSource> unknown_sources_;
};

}  // namespace firebreak::access
