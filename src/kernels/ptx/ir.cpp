// SPDX-License-Identifier: Apache-2.0
#include "kernels/ptx/ir.h"

namespace firebreak::ptx {
namespace {

template <class Named>
std::uint32_t find_by_name(const std::vector<Named>& items, std::string_view name) {
  for (std::size_t i = 0; i < items.size(); ++i)
    if (items[i].name == name) return static_cast<std::uint32_t>(i);
  return no_index;
}

}  // namespace

std::uint32_t find_function(const Module& module, std::string_view name) {
  return find_by_name(module.functions, name);
}

std::uint32_t find_variable(const Module& module, std::string_view name) {
  return find_by_name(module.variables, name);
}

}  // namespace firebreak::ptx
