// SPDX-License-Identifier: Apache-2.0
#include "kernels/ptx/validate.h"

#include <array>

namespace firebreak::ptx {

Finding find_invalid(const Module& module) {
  constexpr std::array passes{check_references,   check_names,  check_labels,  check_modifiers, check_types,
                              check_combinations, check_spaces, check_vectors, check_calls};
  for (const auto pass : passes)
    if (Finding problem = pass(module)) return problem;
  return {};
}

Status validate(const Module& module, std::string_view file_name) {
  if (const Finding problem = find_invalid(module))
    return fail(ErrorCode::InvalidArgument, to_string(*problem, file_name));
  return {};
}

}  // namespace firebreak::ptx
