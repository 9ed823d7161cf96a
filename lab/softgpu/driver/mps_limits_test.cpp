// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/mps_limits.h"

#include <gtest/gtest.h>

#include "ground/base/units.h"

namespace firebreak::softgpu::driver {
namespace {

TEST(MpsLimits, ReadsTheFirstDevicesMemory) {
  EXPECT_EQ(parse_memory_limit("0=1G"), gib);
  EXPECT_EQ(parse_memory_limit("0=512MB"), 512 * mib);
  EXPECT_EQ(parse_memory_limit("1=1G,0=2M"), 2 * mib);
}

TEST(MpsLimits, PassesOverWhatIsNoLimitOfTheFirstDevice) {
  for (const char* text : {"", "1=1G", "0=", "0=1", "0=xG", "10=1G"}) {
    EXPECT_EQ(parse_memory_limit(text), std::nullopt) << text;
  }
}

TEST(MpsLimits, RoundsAShareDownButNotToNothing) {
  EXPECT_EQ(sms_of_share("50", 4), 2);
  EXPECT_EQ(sms_of_share("99.5", 4), 3);
  EXPECT_EQ(sms_of_share("1", 4), 1);
}

TEST(MpsLimits, WhatIsNoShareIsAll) {
  for (const char* text : {"", "0", "-5", "100", "200", "x"}) EXPECT_EQ(sms_of_share(text, 4), 4) << text;
}

}  // namespace
}  // namespace firebreak::softgpu::driver
