// SPDX-License-Identifier: Apache-2.0
#include "kernels/ptx/literal.h"

#include <bit>
#include <cmath>
#include <limits>

namespace firebreak::ptx {
namespace {

// Overflow to infinity is what the source means; a plain cast of it would be undefined.
float to_float(double value) {
  constexpr double largest = std::numeric_limits<float>::max();
  constexpr double half_step_above = 0x1.ffffffp127;  // round-to-nearest gives infinity from here on
  if (std::isfinite(value) && std::fabs(value) > largest)
    return std::copysign(std::fabs(value) >= half_step_above ? std::numeric_limits<float>::infinity()
                                                             : std::numeric_limits<float>::max(),
                         value < 0 ? -1.0F : 1.0F);
  return static_cast<float>(value);
}

std::uint64_t truncated(std::uint64_t bits, std::uint32_t bytes) {
  return bytes >= 8 ? bits : bits & ((1ULL << (8 * bytes)) - 1);
}

}  // namespace

bool literal_fits(bool is_float, bool is_single, Type type) {
  const TypeKind kind = kind_of(type);
  if (kind == TypeKind::None) return false;
  if (!is_float) return kind != TypeKind::Float;
  if (kind == TypeKind::Float) return type == Type::F32 || type == Type::F64;
  return type == (is_single ? Type::B32 : Type::B64);
}

std::optional<std::uint64_t> literal_bits(const Literal& literal, Type type) {
  if (!literal_fits(literal.is_float, literal.is_single, type)) return std::nullopt;
  if (type == Type::Pred) return literal.bits != 0 ? 1 : 0;
  if (!literal.is_float || kind_of(type) == TypeKind::Bits) return truncated(literal.bits, size_bytes(type));
  if (type == Type::F32)
    return literal.is_single ? literal.bits
                             : std::bit_cast<std::uint32_t>(to_float(std::bit_cast<double>(literal.bits)));
  if (!literal.is_single) return literal.bits;
  const auto single = std::bit_cast<float>(static_cast<std::uint32_t>(literal.bits));
  return std::bit_cast<std::uint64_t>(static_cast<double>(single));
}

}  // namespace firebreak::ptx
