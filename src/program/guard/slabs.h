// SPDX-License-Identifier: Apache-2.0
/// Small allocations inside larger ones, since the GPU maps 2 MiB at once. Pure bookkeeping.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace firebreak::guard {

/// The slabs of small allocations. Between two of one slab there is no guard range; a program that strays
/// from one into the other has not left its own memory.
class Slabs {
 public:
  /// Alignment of cuMemAlloc.
  static constexpr std::uint64_t alignment_bytes = 512;

  /// Adds memory to give; it begins and ends with aligned addresses.
  void add(std::uint64_t begin, std::uint64_t size_bytes);
  /// Empty: no slab has room.
  std::optional<std::uint64_t> take(std::uint64_t size_bytes);

  struct Given {
    std::uint64_t size_bytes = 0;        ///< rounded up as it was taken
    std::optional<std::uint64_t> empty;  ///< the slab that has nothing left in it; it is no longer ours
  };
  /// Empty: nothing of ours begins there.
  std::optional<Given> give(std::uint64_t address);

 private:
  struct Slab {
    std::uint64_t end = 0;
    std::map<std::uint64_t, std::uint64_t> taken;  ///< begin -> end
  };
  std::map<std::uint64_t, Slab> slabs_;  ///< slabs by begin
};

}  // namespace firebreak::guard
