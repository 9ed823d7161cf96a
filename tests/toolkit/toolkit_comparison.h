// SPDX-License-Identifier: Apache-2.0
/// How our own declarations are compared with the toolkit's, where one is installed.
#pragma once

namespace firebreak::cuda {

template <class Own, class Toolkits>
consteval bool same(Own own, Toolkits toolkits) {
  return static_cast<long long>(own) == static_cast<long long>(toolkits);
}

template <class Own, class Toolkits>
consteval bool same_size() {
  return sizeof(Own) == sizeof(Toolkits) && alignof(Own) == alignof(Toolkits);
}

}  // namespace firebreak::cuda
