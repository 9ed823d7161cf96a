// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "inject/kind.h"

namespace firebreak::inject {

/// Lists all kinds, grouped by fault class.
std::span<const Kind* const> catalogue();

/// Null when there is no kind of that name.
const Kind* find(std::string_view name);
/// Gives the present name of a kind in an older result file: there `unmapped-store` and its like were at
/// 0x7000dead0000, or at 0xdead0000 where the guard had them contained. Other names stay.
std::string current_name(const std::string& name, bool contained);

/// The kind that was probably meant by a name that find() does not know; null when none is close.
const Kind* closest(std::string_view name);

}  // namespace firebreak::inject
