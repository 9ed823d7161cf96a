// SPDX-License-Identifier: Apache-2.0
// Against sets of single bytes.
#include "kernels/regions/byte_ranges.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tests/doubles/base/test_seed.h"

namespace firebreak::regions {
namespace {

using Bytes = std::set<std::uint64_t>;

Bytes bytes_of(const ByteRanges& ranges) {
  Bytes bytes;
  for (const ByteRange& range : ranges.ranges())
    for (std::uint64_t byte = range.begin; byte < range.end; ++byte) bytes.insert(byte);
  return bytes;
}

ByteRange random_range(std::mt19937_64& random) {
  const std::uint64_t begin = random() % 60;
  return {begin, begin + random() % 9};
}

TEST(ByteRanges, AreASetOfBytes) {
  std::mt19937_64 random(test_seed());
  for (int round = 0; round < 2'000; ++round) {
    ByteRanges ranges;
    Bytes wanted;
    for (std::uint64_t i = random() % 8; i > 0; --i) {
      const ByteRange range = random_range(random);
      ranges.add(range);
      for (std::uint64_t byte = range.begin; byte < range.end; ++byte) wanted.insert(byte);
    }
    ByteRanges others;
    for (std::uint64_t i = random() % 4; i > 0; --i) others.add(random_range(random));
    ranges.remove(others);
    for (const std::uint64_t byte : bytes_of(others)) wanted.erase(byte);
    ASSERT_EQ(bytes_of(ranges), wanted);
    ASSERT_EQ(ranges.size_bytes(), wanted.size());
    for (std::size_t i = 1; i < ranges.ranges().size(); ++i)
      ASSERT_LT(ranges.ranges()[i - 1].end, ranges.ranges()[i].begin);
    const ByteRange asked = random_range(random);
    Bytes common;
    Bytes missing;
    for (std::uint64_t byte = asked.begin; byte < asked.end; ++byte)
      (wanted.contains(byte) ? common : missing).insert(byte);
    ASSERT_EQ(bytes_of(ranges.common_with(asked)), common);
    ASSERT_EQ(bytes_of(ranges.missing_of(asked)), missing);
    ASSERT_EQ(ranges.meets(asked), !common.empty());
  }
}

}  // namespace
}  // namespace firebreak::regions
