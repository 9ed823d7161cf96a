// SPDX-License-Identifier: Apache-2.0
#include "program/journal/payload_space.h"

#include <gtest/gtest.h>

#include <deque>
#include <utility>

#include "tests/doubles/journal/test_random.h"

namespace firebreak::journal {
namespace {

TEST(PayloadSpace, PiecesNeverOverlapAndAllOfItIsFreeWhenNothingIsTaken) {
  constexpr std::size_t capacity = 300'032;
  TestRandom random;
  SCOPED_TRACE(random.how_to_repeat());
  PayloadSpace space(capacity);
  std::deque<std::pair<std::size_t, std::size_t>> live;
  for (int i = 0; i < 100'000; ++i) {
    const std::size_t bytes = random.below(4) == 0 ? random.below(capacity + 1) : random.below(2000);
    const auto begin = space.take(bytes);
    ASSERT_TRUE(begin.has_value() || !live.empty()) << bytes;
    if (begin) {
      ASSERT_LE(*begin + bytes, capacity);
      for (const auto& [other, end] : live) ASSERT_TRUE(*begin + bytes <= other || end <= *begin);
      live.emplace_back(*begin, *begin + bytes);
    }
    if (begin && random.below(8) == 0) {
      space.give_back_newest();
      live.pop_back();
    }
    for (std::size_t n = begin ? random.below(3) : 1 + random.below(live.size()); n > 0 && !live.empty();
         --n) {
      space.give_back_oldest();
      live.pop_front();
    }
  }
}

TEST(PayloadSpace, StaysAtTheFrontWhileLittleIsTaken) {
  PayloadSpace space(1'000'000);
  for (int i = 0; i < 10'000; ++i) {
    const auto begin = space.take(1000);
    ASSERT_TRUE(begin.has_value());
    EXPECT_LT(*begin, PayloadSpace::warm_bytes + 1024);
    if (i >= 3) space.give_back_oldest();
  }
}

}  // namespace
}  // namespace firebreak::journal
