// SPDX-License-Identifier: Apache-2.0
#include "ground/base/utc.h"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace firebreak {
namespace {

TEST(Utc, IsTheSameWhereverTheMachineStands) {
  const WallTime at(std::chrono::milliseconds(1'764'403'805'007));
  for (const char* place : {"UTC", "Asia/Tokyo", "XYZ-9"}) {
    ASSERT_EQ(::setenv("TZ", place, 1), 0);
    ::tzset();
    EXPECT_EQ(in_utc(at), "2025-11-29T08:10:05Z");
    EXPECT_EQ(in_utc_ms(at), "2025-11-29T08:10:05.007Z");
  }
  ASSERT_EQ(::unsetenv("TZ"), 0);
}

}  // namespace
}  // namespace firebreak
