// SPDX-License-Identifier: Apache-2.0
#include "ground/base/units.h"

#include <gtest/gtest.h>

namespace firebreak {
namespace {

TEST(Units, RoundUpKeepsMultiplesAndRaisesTheRest) {
  EXPECT_EQ(round_up(0, 2 * mib), 0u);
  EXPECT_EQ(round_up(1, 2 * mib), 2 * mib);
  EXPECT_EQ(round_up(2 * mib, 2 * mib), 2 * mib);
  EXPECT_EQ(round_up(2 * mib + 1, 2 * mib), 4 * mib);
}

}  // namespace
}  // namespace firebreak
