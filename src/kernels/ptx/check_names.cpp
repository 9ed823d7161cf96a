// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <unordered_set>

#include "kernels/ptx/validate.h"

namespace firebreak::ptx {
namespace {

Finding check_variable(const Variable& variable) {
  const bool unknown_size = !variable.dimensions.empty() && variable.dimensions.front() == 0;
  if (unknown_size && variable.linkage != Linkage::Extern)
    return complain(variable.location, quoted(variable.name) + " has no size and is not .extern");
  if (!std::has_single_bit(variable.alignment_bytes))
    return complain(variable.location,
                    "the alignment of " + quoted(variable.name) + " is not a power of two");
  if (variable.type == Type::None || variable.type == Type::Pred)
    return complain(variable.location, quoted(variable.name) + " has a type that memory cannot hold");
  return std::nullopt;
}

}  // namespace

Finding check_names(const Module& module) {
  std::unordered_set<std::string_view> names;
  for (const Variable& variable : module.variables) {
    if (!names.insert(variable.name).second)
      return complain(variable.location, quoted(variable.name) + " is declared twice");
    if (Finding problem = check_variable(variable)) return problem;
  }
  for (const Function& function : module.functions) {
    if (!names.insert(function.name).second)
      return complain(function.location, quoted(function.name) + " is declared twice");
    for (const Variable& variable : function.variables)
      if (Finding problem = check_variable(variable)) return problem;
  }
  return std::nullopt;
}

}  // namespace firebreak::ptx
