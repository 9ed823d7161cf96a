// SPDX-License-Identifier: Apache-2.0
/// The way from a number as written to the bit pattern that an instruction or variable of some type gets.
/// Internal to src/kernels/ptx.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/ptx/types.h"

namespace firebreak::ptx {

/// A literal as the lexer gives it: an integer, the pattern of a double, or (is_single) of a float.
struct Literal {
  std::uint64_t bits = 0;
  bool is_float = false;
  bool is_single = false;
};

/// May this kind of number stand where `type` is read? Integers where an integer, bits or a predicate is; any
/// floating-point number where f32 or f64 is; 0f also where b32 is, others where b64 is.
bool literal_fits(bool is_float, bool is_single, Type type);

/// The pattern, zero above the width of `type`; integers are truncated to it, floating-point numbers rounded
/// to nearest even. Nothing where the literal does not fit.
std::optional<std::uint64_t> literal_bits(const Literal& literal, Type type);

}  // namespace firebreak::ptx
