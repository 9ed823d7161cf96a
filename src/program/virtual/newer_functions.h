// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "shared/abi/cuda_api.h"

namespace firebreak::virtual_driver {

/// All functions up to this version of CUDA are in shared/abi/cuda_api.def.
inline constexpr int newest_known_version = 13000;

/// True when the driver has answered a name that is known here with a function that is newer than all that
/// are. `ask` answers what the driver has for that name at a version, null where it has nothing. In the place
/// of such a function none of ours may stand, since its parameters are not known.
template <class Ask>
bool is_newer_than_known(std::string_view name, int cuda_version, const void* answer, const Ask& ask) {
  if (cuda_version <= newest_known_version || !abi::is_cuda_function_name(name)) return false;
  return ask(newest_known_version) != answer;
}

/// True when it has answered a name that is not known here, and that all drivers before did not have. Ours
/// can neither follow what it does, nor take it to the instance that works.
template <class Ask>
bool is_new_name(std::string_view name, int cuda_version, const Ask& ask) {
  return cuda_version > newest_known_version && !abi::is_cuda_function_name(name) &&
         ask(newest_known_version) == nullptr;
}

}  // namespace firebreak::virtual_driver
