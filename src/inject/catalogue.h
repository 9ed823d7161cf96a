// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "inject/kind.h"

namespace firebreak::inject {

/// All kinds, grouped by fault class.
std::span<const Kind* const> catalogue();

/// Null when there is no kind of that name.
const Kind* find(std::string_view name);

/// The kind that was probably meant by a name that find() does not know; null when none is close.
const Kind* closest(std::string_view name);

}  // namespace firebreak::inject
