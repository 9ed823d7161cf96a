// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace firebreak {

/// Lets std::visit take one lambda an alternative.
template <class... Each>
struct Overloaded : Each... {
  using Each::operator()...;
};
/// clang knows it of itself from 17 on.
template <class... Each>
Overloaded(Each...) -> Overloaded<Each...>;

}  // namespace firebreak
