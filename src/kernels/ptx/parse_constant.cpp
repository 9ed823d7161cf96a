// SPDX-License-Identifier: Apache-2.0
// Constant expressions: integers with C's operators and precedence; floating-point literals with a sign.
#include <array>
#include <bit>
#include <limits>

#include "kernels/ptx/parser.h"
#include "kernels/ptx/type_names.h"

namespace firebreak::ptx {
namespace {

struct BinaryOperator {
  std::string_view symbol;
  int precedence;
};

constexpr std::array binary_operators{
    BinaryOperator{"||", 1}, BinaryOperator{"&&", 2}, BinaryOperator{"|", 3},  BinaryOperator{"^", 4},
    BinaryOperator{"&", 5},  BinaryOperator{"==", 6}, BinaryOperator{"!=", 6}, BinaryOperator{"<", 7},
    BinaryOperator{"<=", 7}, BinaryOperator{">", 7},  BinaryOperator{">=", 7}, BinaryOperator{"<<", 8},
    BinaryOperator{">>", 8}, BinaryOperator{"+", 9},  BinaryOperator{"-", 9},  BinaryOperator{"*", 10},
    BinaryOperator{"/", 10}, BinaryOperator{"%", 10},
};

std::int64_t as_signed(std::uint64_t bits) { return static_cast<std::int64_t>(bits); }

Constant integer(std::uint64_t bits, bool is_unsigned, SourceLocation location) {
  return {bits, is_unsigned, false, false, location};
}

class ExpressionParser {
 public:
  explicit ExpressionParser(Parser& parser) : parser_(parser) {}

  Constant ternary() {
    if (!deeper()) return {};
    Constant condition = binary(1);
    if (parser_.tokens.accept("?")) {
      require_integer(condition);
      const Constant yes = ternary();
      parser_.tokens.expect(":");
      const Constant no = ternary();
      condition = condition.bits != 0 ? yes : no;
    }
    --depth_;
    return condition;
  }

 private:
  bool deeper() {
    if (++depth_ <= max_expression_depth) return true;
    parser_.tokens.fail(parser_.tokens.peek().location, "expression is nested too deeply");
    return false;
  }

  void require_integer(const Constant& constant) {
    if (constant.is_float) parser_.tokens.fail(constant.location, "this operator takes integers");
  }

  const BinaryOperator* at_operator(int lowest) const {
    for (const BinaryOperator& candidate : binary_operators)
      if (candidate.precedence >= lowest && parser_.tokens.at(candidate.symbol)) return &candidate;
    return nullptr;
  }

  Constant binary(int lowest) {
    Constant left = unary();
    while (const BinaryOperator* op = at_operator(lowest)) {
      const SourceLocation location = parser_.tokens.next().location;
      const Constant right = binary(op->precedence + 1);
      require_integer(left);
      require_integer(right);
      left = apply(op->symbol, left, right, location);
    }
    return left;
  }

  Constant apply(std::string_view op, const Constant& left, const Constant& right, SourceLocation location) {
    const std::uint64_t a = left.bits;
    const std::uint64_t b = right.bits;
    const bool is_unsigned = left.is_unsigned || right.is_unsigned;
    const auto result = [&](std::uint64_t bits) { return integer(bits, is_unsigned, left.location); };
    const auto truth = [&](bool value) { return integer(value ? 1 : 0, false, left.location); };
    const bool less = is_unsigned ? a < b : as_signed(a) < as_signed(b);
    if (op == "+") return result(a + b);
    if (op == "-") return result(a - b);
    if (op == "*") return result(a * b);
    if (op == "/" || op == "%") return result(divide(op == "/", a, b, is_unsigned, location));
    if (op == "<<") return integer(b < 64 ? a << b : 0, left.is_unsigned, left.location);
    if (op == ">>") return integer(shift_right(a, b, left.is_unsigned), left.is_unsigned, left.location);
    if (op == "&") return result(a & b);
    if (op == "|") return result(a | b);
    if (op == "^") return result(a ^ b);
    if (op == "&&") return truth(a != 0 && b != 0);
    if (op == "||") return truth(a != 0 || b != 0);
    if (op == "==") return truth(a == b);
    if (op == "!=") return truth(a != b);
    if (op == "<") return truth(less);
    if (op == ">=") return truth(!less);
    if (op == "<=") return truth(less || a == b);
    return truth(!less && a != b);
  }

  static std::uint64_t shift_right(std::uint64_t a, std::uint64_t amount, bool is_unsigned) {
    if (is_unsigned || as_signed(a) >= 0) return amount < 64 ? a >> amount : 0;
    return amount < 64 ? static_cast<std::uint64_t>(as_signed(a) >> amount) : ~0ULL;
  }

  std::uint64_t divide(bool quotient, std::uint64_t a, std::uint64_t b, bool is_unsigned,
                       SourceLocation location) {
    if (b == 0) {
      parser_.tokens.fail(location, "division by zero");
      return 0;
    }
    if (is_unsigned) return quotient ? a / b : a % b;
    if (as_signed(b) == -1) return quotient ? 0 - a : 0;  // the lowest integer has no negative
    return static_cast<std::uint64_t>(quotient ? as_signed(a) / as_signed(b) : as_signed(a) % as_signed(b));
  }

  Constant unary() {
    if (!deeper()) return {};
    const Token& token = parser_.tokens.peek();
    const SourceLocation location = token.location;
    Constant result;
    if (parser_.tokens.accept("-")) {
      result = negated(unary());
    } else if (parser_.tokens.accept("+")) {
      result = unary();
    } else if (parser_.tokens.accept("~") || parser_.tokens.at("!")) {
      const bool is_not = parser_.tokens.accept("!");
      const Constant operand = unary();
      require_integer(operand);
      result = is_not ? integer(operand.bits == 0 ? 1 : 0, false, location)
                      : integer(~operand.bits, operand.is_unsigned, location);
    } else {
      result = primary();
    }
    result.location = location;
    --depth_;
    return result;
  }

  static Constant negated(Constant constant) {
    if (constant.is_single)
      constant.bits ^= 0x80000000U;
    else if (constant.is_float)
      constant.bits ^= 1ULL << 63;
    else
      constant.bits = 0 - constant.bits;
    return constant;
  }

  Constant primary() {
    TokenStream& tokens = parser_.tokens;
    if (tokens.accept("(")) return parenthesised();
    const Token token = tokens.peek();
    const bool is_warp_size = token.kind == TokenKind::Word && token.text == "WARP_SZ";
    switch (token.kind) {
      case TokenKind::Integer:
        tokens.next();
        return integer(token.bits, token.is_unsigned, token.location);
      case TokenKind::Float:
        tokens.next();
        return {token.bits, false, true, false, token.location};
      case TokenKind::SingleFloat:
        tokens.next();
        return {token.bits, false, true, true, token.location};
      default:
        break;
    }
    if (is_warp_size) {
      tokens.next();
      return integer(32, false, token.location);
    }
    tokens.fail_expected("a number");
    return {};
  }

  // A cast, (.s64)x or (.u64)x, or an expression.
  Constant parenthesised() {
    TokenStream& tokens = parser_.tokens;
    if (tokens.peek().kind != TokenKind::Dotted) {
      const Constant inner = ternary();
      tokens.expect(")");
      return inner;
    }
    const Token type = tokens.next();
    if (type.text != "s64" && type.text != "u64") tokens.fail(type.location, "a cast is to .s64 or .u64");
    tokens.expect(")");
    Constant operand = unary();
    require_integer(operand);
    operand.is_unsigned = type.text == "u64";
    return operand;
  }

  Parser& parser_;
  std::uint32_t depth_ = 0;
};

}  // namespace

bool at_constant(const Parser& parser) {
  const Token& token = parser.tokens.peek();
  switch (token.kind) {
    case TokenKind::Integer:
    case TokenKind::Float:
    case TokenKind::SingleFloat:
      return true;
    case TokenKind::Word:
      return token.text == "WARP_SZ";
    case TokenKind::Punctuation:
      return token.text == "-" || token.text == "+" || token.text == "~" || token.text == "(";
    default:
      return false;
  }
}

Constant parse_constant(Parser& parser) { return ExpressionParser(parser).ternary(); }

std::uint64_t parse_integer(Parser& parser, std::uint64_t lowest, std::uint64_t highest,
                            std::string_view what) {
  const Constant constant = parse_constant(parser);
  if (parser.tokens.failed()) return lowest;
  const bool negative = !constant.is_unsigned && as_signed(constant.bits) < 0;
  if (!constant.is_float && !negative && constant.bits >= lowest && constant.bits <= highest)
    return constant.bits;
  parser.tokens.fail(constant.location, std::string(what) + " must be an integer from " +
                                            std::to_string(lowest) + " to " + std::to_string(highest));
  return lowest;
}

}  // namespace firebreak::ptx
