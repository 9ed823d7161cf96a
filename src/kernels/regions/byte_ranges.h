// SPDX-License-Identifier: Apache-2.0
/// A set of bytes: ranges of addresses that do not touch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace firebreak::regions {

struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  ///< end, which is not one of them
  bool operator==(const ByteRange&) const = default;
};

class ByteRanges {
 public:
  /// Empty ranges add nothing.
  void add(ByteRange range);
  void add(const ByteRanges& others);
  void remove(const ByteRanges& others);
  void clear() { ranges_.clear(); }

  bool empty() const { return ranges_.empty(); }
  std::uint64_t size_bytes() const;
  bool meets(ByteRange range) const;
  /// Returns the part of the range that is not in this set.
  ByteRanges missing_of(ByteRange range) const;
  /// Returns the part of the range that is in this set.
  ByteRanges common_with(ByteRange range) const;
  /// Returns the ranges by address.
  const std::vector<ByteRange>& ranges() const { return ranges_; }

 private:
  std::size_t first_ending_after(std::uint64_t address) const;

  std::vector<ByteRange> ranges_;
};

}  // namespace firebreak::regions
