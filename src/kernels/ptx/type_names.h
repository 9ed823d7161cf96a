// SPDX-License-Identifier: Apache-2.0
/// The way from words in the source to types and state spaces. Internal to src/kernels/ptx.
#pragma once

#include <string_view>

#include "kernels/ptx/types.h"

namespace firebreak::ptx {

/// "f32" gives F32; None for any other word.
Type type_from_name(std::string_view name);

/// "global" gives Global; also shared::cta, param::entry and param::func. None for any other word.
StateSpace space_from_name(std::string_view name);

}  // namespace firebreak::ptx
