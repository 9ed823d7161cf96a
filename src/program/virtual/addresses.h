// SPDX-License-Identifier: Apache-2.0
/// The window of addresses that every instance of the driver has in common, and what of it is taken. Numbers
/// alone: nothing here maps anything.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace firebreak::virtual_driver {

/// Reserved whole by every instance. An H100 gave 256 GiB there to each of several instances of one process.
/// An H100 under MPS and an H200 gave 4 TiB to one instance, at once and without memory for it (driver
/// 580.159.04). Nothing of Linux's or of CUDA's own choosing lies there. Who maps memory by itself
/// reserves 1.125 times the GPU's, several times.
inline constexpr std::uint64_t window_begin = 0x5000'0000'0000;
inline constexpr std::uint64_t window_bytes = std::uint64_t{4} << 40;
/// What cuMemCreate gives memory in: the granularity of every GPU that the project was measured on.
inline constexpr std::uint64_t block_bytes = std::uint64_t{2} << 20;

constexpr bool is_in_window(std::uint64_t address) { return address - window_begin < window_bytes; }
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
