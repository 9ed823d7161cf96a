// SPDX-License-Identifier: Apache-2.0
#include "ground/base/spread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace firebreak {
namespace {

using testing::ElementsAre;

TEST(SpreadOf, TakesValuesThatOccurred) {
  const Spread spread = spread_of({4, 1, 3, 2});
  EXPECT_EQ(spread.count, 4U);
  EXPECT_EQ(spread.min, 1);
  EXPECT_EQ(spread.p25, 1);
  EXPECT_EQ(spread.p50, 2);
  EXPECT_EQ(spread.p75, 3);
  EXPECT_EQ(spread.p99, 4);
  EXPECT_EQ(spread.max, 4);
  EXPECT_THAT(spread.values, ElementsAre(1, 2, 3, 4));
}

TEST(SpreadOf, OneValueIsEveryPercentile) {
  const Spread spread = spread_of({7});
  EXPECT_EQ(spread.p25, 7);
  EXPECT_EQ(spread.p99, 7);
}

TEST(SpreadOf, NothingIsZeroes) { EXPECT_EQ(spread_of({}).count, 0U); }

}  // namespace
}  // namespace firebreak
