// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace firebreak::workloads {

/// FNV-1a over 64 bits: tells outputs apart, is no protection against forgery.
std::uint64_t digest(std::string_view bytes);

/// The same of a value's own bytes; only for types without padding.
template <class T>
std::uint64_t digest_of(const T& value) {
  static_assert(std::has_unique_object_representations_v<T>);
  return digest(std::string_view(reinterpret_cast<const char*>(&value), sizeof value));
}

/// 16 hexadecimal digits.
std::string hexadecimal(std::uint64_t value);

}  // namespace firebreak::workloads
