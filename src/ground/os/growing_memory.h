// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <utility>

namespace firebreak::os {

/// Bytes to which more are added, none of which is ever moved or copied again: the addresses of all that may
/// come are set aside at first, and cost no memory.
class GrowingMemory {
 public:
  explicit GrowingMemory(std::size_t bytes_max) : bytes_max_(bytes_max) {}
  GrowingMemory(GrowingMemory&& other) noexcept;
  GrowingMemory& operator=(GrowingMemory&& other) noexcept;
  ~GrowingMemory() { clear(); }

  /// The first ones that there is room for; returns how many.
  std::size_t add(std::span<const std::byte> more);
  void clear();
  std::size_t size() const { return size_bytes_; }
  std::span<const std::byte> all() const { return {begin_, size_bytes_}; }

 private:
  void make_usable(std::size_t wanted_bytes);

  std::size_t bytes_max_;
  std::byte* begin_ = nullptr;  ///< null: nothing has been set aside
  std::size_t size_bytes_ = 0;
  std::size_t usable_bytes_ = 0;
};

}  // namespace firebreak::os
