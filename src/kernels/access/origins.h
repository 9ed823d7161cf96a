// SPDX-License-Identifier: Apache-2.0
/// The origin of an address: what it starts from, and what else it is made of. Internal to
/// src/kernels/access.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/access/budget.h"
#include "kernels/access/expression.h"
#include "kernels/access/register_flow.h"

namespace firebreak::access {

enum class Place : std::uint8_t {
  None,
  Parameter,  ///< a pointer in the parameter block
  Variable,   ///< a variable of the module
  OwnMemory,  ///< shared, local or parameter memory
  Mixed,      ///< one of several, or nobody knows
};

/// The origin of one expression. A value that is added to, chosen or carried along keeps its start; whatever
/// else goes in, by any operation, is among the others.
struct Origin {
  bool is_known = false;  ///< false: it has not been looked at
  Place place = Place::None;
  bool has_second = false;         ///< two parameters are added: one of them is the pointer
  std::uint64_t value = 0;         ///< byte offset in the parameter block, or index of the variable
  std::uint64_t second_value = 0;  ///< the other's offset
  ValueOrigins others;

  bool operator==(const Origin&) const = default;
};

/// Finds origins by expression of the pool. Where the budget is spent it lacks something.
std::vector<Origin> find_origins(const ExpressionPool& pool, const std::vector<ValueOrigins>& registers,
                                 Budget& budget);

}  // namespace firebreak::access
