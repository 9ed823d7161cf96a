// SPDX-License-Identifier: Apache-2.0
/// Reading from bytes that somebody else made: nothing outside of them is ever touched.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>

namespace firebreak::fatbin {

/// Reads a value at `offset`, wherever it is aligned; nothing where the bytes end before.
template <class Type>
std::optional<Type> read_at(std::string_view bytes, std::uint64_t offset) {
  static_assert(std::is_trivially_copyable_v<Type>);
  if (offset > bytes.size() || bytes.size() - offset < sizeof(Type)) return std::nullopt;
  Type value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// `size_bytes` from `offset` on; nothing where the bytes end before.
inline std::optional<std::string_view> part_of(std::string_view bytes, std::uint64_t offset,
                                               std::uint64_t size_bytes) {
  if (offset > bytes.size() || bytes.size() - offset < size_bytes) return std::nullopt;
  return bytes.substr(offset, size_bytes);
}

}  // namespace firebreak::fatbin
