// SPDX-License-Identifier: Apache-2.0
/// The window of addresses that every instance of the driver has in common, and what of it is taken. Numbers
/// alone: nothing here maps anything.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "program/instance/window.h"

namespace firebreak::virtual_driver {

using instance::is_in_window;
using instance::window_begin;
using instance::window_bytes;

/// What cuMemCreate gives memory in: the granularity of every GPU that the project was measured on.
inline constexpr std::uint64_t block_bytes = std::uint64_t{2} << 20;

constexpr std::uint64_t whole_blocks(std::uint64_t size_bytes) {
  return (size_bytes + block_bytes - 1) / block_bytes * block_bytes;
}

/// First fit, lowest address first. Not thread safe.
class Addresses {
 public:
  Addresses(std::uint64_t begin, std::uint64_t size_bytes);

  /// `size_bytes` is not 0. Empty: there is no gap so large.
  std::optional<std::uint64_t> take(std::uint64_t size_bytes, std::uint64_t alignment_bytes);
  /// False: nothing was taken that begins there.
  bool give(std::uint64_t begin);

  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t size_bytes = 0;
  };
  /// The taken range that holds the address.
  std::optional<Range> find(std::uint64_t address) const;
  bool is_empty() const { return taken_.empty(); }

 private:
  std::uint64_t begin_;
  std::uint64_t end_;
  std::map<std::uint64_t, std::uint64_t> taken_;  ///< begin -> size
};

}  // namespace firebreak::virtual_driver
