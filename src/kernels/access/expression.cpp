// SPDX-License-Identifier: Apache-2.0
#include "kernels/access/expression.h"

#include <utility>

namespace firebreak::access {
namespace {

std::uint64_t low_bits(std::uint64_t value, std::uint8_t width_bits) {
  return width_bits >= 64 ? value : value & ((std::uint64_t{1} << width_bits) - 1);
}

bool is_commutative(Operation operation) {
  switch (operation) {
    case Operation::Add:
    case Operation::Multiply:
    case Operation::And:
    case Operation::Or:
    case Operation::Xor:
    case Operation::Minimum:
    case Operation::Maximum:
      return true;
    default:
      return false;
  }
}

ptx::Compare opposite(ptx::Compare how) {
  switch (how) {
    case ptx::Compare::Eq:
      return ptx::Compare::Ne;
    case ptx::Compare::Ne:
      return ptx::Compare::Eq;
    case ptx::Compare::Lt:
      return ptx::Compare::Ge;
    case ptx::Compare::Ge:
      return ptx::Compare::Lt;
    case ptx::Compare::Le:
      return ptx::Compare::Gt;
    case ptx::Compare::Gt:
      return ptx::Compare::Le;
    default:
      return ptx::Compare::None;
  }
}

}  // namespace

std::size_t ExpressionPool::Hash::operator()(const Expression& node) const {
  std::uint64_t hash = node.value * 0x9E37'79B9'7F4A'7C15U;
  const auto mix = [&hash](std::uint64_t word) {
    hash ^= word + 0x9E37'79B9'7F4A'7C15U + (hash << 6) + (hash >> 2);
  };
  mix(static_cast<std::uint64_t>(node.operation) | std::uint64_t{node.width_bits} << 8 |
      std::uint64_t{node.operand_width_bits} << 16 | std::uint64_t{node.is_signed} << 24 |
      static_cast<std::uint64_t>(node.compare) << 32);
  for (const ExpressionIndex operand : node.operands) mix(operand);
  return hash;
}

ExpressionIndex ExpressionPool::intern(const Expression& node) {
  const auto [found, is_new] = index_.try_emplace(node, static_cast<ExpressionIndex>(nodes_.size()));
  if (is_new) nodes_.push_back(node);
  return found->second;
}

ExpressionIndex ExpressionPool::constant(std::uint8_t width_bits, std::uint64_t value) {
  return leaf(Operation::Constant, width_bits, low_bits(value, width_bits));
}

ExpressionIndex ExpressionPool::leaf(Operation operation, std::uint8_t width_bits, std::uint64_t value) {
  Expression node;
  node.operation = operation;
  node.width_bits = width_bits;
  node.value = value;
  return intern(node);
}

ExpressionIndex ExpressionPool::unknown(std::uint8_t width_bits, UnknownReason reason, UnknownSource source) {
  Expression node;
  node.operation = Operation::Unknown;
  node.width_bits = width_bits;
  node.value = unknown_sources_.size();
  unknown_sources_.push_back(source);
  node.reason = reason;
  return intern(node);
}

ExpressionIndex ExpressionPool::phi(std::uint8_t width_bits, std::uint32_t block) {
  phis.emplace_back();
  phis.back().block = block;
  const ExpressionIndex self = leaf(Operation::Phi, width_bits, phis.size() - 1);
  phis.back().self = self;
  return self;
}

ExpressionIndex ExpressionPool::resolve(ExpressionIndex index) const {
  while (index != no_expression && nodes_[index].operation == Operation::Phi &&
         phis[nodes_[index].value].replacement != no_expression)
    index = phis[nodes_[index].value].replacement;
  return index;
}

bool ExpressionPool::is_constant(ExpressionIndex index, std::uint64_t value) const {
  return nodes_[index].operation == Operation::Constant && nodes_[index].value == value;
}

// Simplifies only what makes later patterns visible; the evaluation at launch does the arithmetic.
ExpressionIndex ExpressionPool::simplify(const Expression& node) {
  const auto [a, b, c] = node.operands;
  const bool both_constant = b != no_expression && nodes_[a].operation == Operation::Constant &&
                             nodes_[b].operation == Operation::Constant;
  switch (node.operation) {
    case Operation::Add:
      if (both_constant) return constant(node.width_bits, nodes_[a].value + nodes_[b].value);
      if (is_constant(b, 0)) return a;
      break;
    case Operation::Subtract:
      if (both_constant) return constant(node.width_bits, nodes_[a].value - nodes_[b].value);
      if (is_constant(b, 0)) return a;
      if (const Expression product = nodes_[b]; product.operation == Operation::Multiply) {
        for (const int which : {0, 1}) {
          const Expression& quotient = nodes_[product.operands[static_cast<std::size_t>(which)]];
          const ExpressionIndex divisor = product.operands[static_cast<std::size_t>(1 - which)];
          if (quotient.operation == Operation::Divide && quotient.operands[0] == a &&
              quotient.operands[1] == divisor && quotient.width_bits == node.width_bits)
            return binary(Operation::Remainder, node.width_bits, quotient.is_signed, a, divisor);
        }
      }
      break;
    case Operation::Multiply:
      if (both_constant) return constant(node.width_bits, nodes_[a].value * nodes_[b].value);
      if (is_constant(b, 1)) return a;
      if (is_constant(b, 0)) return b;
      break;
    case Operation::ShiftLeft:
      if (nodes_[b].operation == Operation::Constant && nodes_[b].value < node.width_bits)
        return binary(Operation::Multiply, node.width_bits, false, a,
                      constant(node.width_bits, std::uint64_t{1} << nodes_[b].value));
      break;
    case Operation::And:
      if (a == b) return a;
      break;
    case Operation::Or:
      if (a == b) return a;
      if (is_constant(b, 0)) return a;
      break;
    case Operation::ShiftRight:
    case Operation::Xor:
      if (is_constant(b, 0)) return a;
      break;
    default:
      break;
  }
  return intern(node);
}

ExpressionIndex ExpressionPool::unary(Operation operation, std::uint8_t width_bits, ExpressionIndex a) {
  if (nodes_[a].width_bits == width_bits) return a;
  Expression node;
  node.operation = operation;
  node.width_bits = width_bits;
  node.operand_width_bits = nodes_[a].width_bits;
  node.operands[0] = a;
  if (nodes_[a].operation == Operation::Constant) {
    const bool negative =
        operation == Operation::SignExtend && (nodes_[a].value >> (node.operand_width_bits - 1) & 1U) != 0;
    const std::uint64_t ones = ~low_bits(~std::uint64_t{0}, node.operand_width_bits);
    return constant(width_bits, nodes_[a].value | (negative ? ones : 0));
  }
  return intern(node);
}

ExpressionIndex ExpressionPool::binary(Operation operation, std::uint8_t width_bits, bool is_signed,
                                       ExpressionIndex a, ExpressionIndex b) {
  // Constants second, else the smaller index first: a + b and b + a are one.
  const bool a_constant = nodes_[a].operation == Operation::Constant;
  const bool b_constant = nodes_[b].operation == Operation::Constant;
  if (is_commutative(operation) && (a_constant != b_constant ? a_constant : b < a)) std::swap(a, b);
  Expression node;
  node.operation = operation;
  node.width_bits = width_bits;
  node.is_signed = is_signed;
  node.operands = {a, b, no_expression};
  return simplify(node);
}

ExpressionIndex ExpressionPool::select(ExpressionIndex predicate, ExpressionIndex yes, ExpressionIndex no) {
  if (yes == no) return yes;
  Expression node;
  node.operation = Operation::Select;
  node.width_bits = nodes_[yes].width_bits;
  node.operands = {predicate, yes, no};
  return intern(node);
}

ExpressionIndex ExpressionPool::compare(ptx::Compare how, bool is_signed, std::uint8_t operand_width_bits,
                                        ExpressionIndex a, ExpressionIndex b) {
  Expression node;
  node.operation = Operation::Compare;
  node.width_bits = 1;
  node.operand_width_bits = operand_width_bits;
  node.is_signed = is_signed;
  node.compare = how;
  node.operands = {a, b, no_expression};
  return intern(node);
}

ExpressionIndex ExpressionPool::negate_predicate(ExpressionIndex predicate) { return negate(predicate, 0); }

ExpressionIndex ExpressionPool::negate(ExpressionIndex predicate, int depth) {
  constexpr int most_depth = 32;  // deeper predicates stay as they are, negated as a whole
  if (const auto known = negations_.find(predicate); known != negations_.end()) return known->second;
  const Expression node = nodes_[predicate];
  ExpressionIndex negated = no_expression;
  if (node.operation == Operation::Compare && opposite(node.compare) != ptx::Compare::None) {
    negated = compare(opposite(node.compare), node.is_signed, node.operand_width_bits, node.operands[0],
                      node.operands[1]);
  } else if (node.operation == Operation::Constant) {
    negated = constant(1, node.value == 0 ? 1 : 0);
  } else if ((node.operation == Operation::And || node.operation == Operation::Or) && depth < most_depth) {
    // the negation of (a and b) is not a or not b
    const ExpressionIndex a = negate(node.operands[0], depth + 1);
    const ExpressionIndex b = negate(node.operands[1], depth + 1);
    negated = binary(node.operation == Operation::And ? Operation::Or : Operation::And, 1, false, a, b);
  } else {
    negated = binary(Operation::Xor, 1, false, predicate, constant(1, 1));
  }
  negations_.emplace(predicate, negated);
  return negated;
}

}  // namespace firebreak::access
