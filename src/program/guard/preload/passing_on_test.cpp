// SPDX-License-Identifier: Apache-2.0
#include "program/guard/preload/passing_on.h"

#include <gtest/gtest.h>

#include <string>

namespace firebreak::guard {
namespace {

std::string without(const std::string& preloads) {
  std::string into(preloads.size() + 1, '?');
  into.resize(without_guard(preloads, into.data()));
  return into;
}

TEST(PassingOn, KnowsItselfByItsName) {
  EXPECT_TRUE(preloads_in("PATH=/bin").empty());
  EXPECT_TRUE(has_guard(preloads_in("LD_PRELOAD=/opt/lib/$LIB/libfirebreak-guard.so")));
  EXPECT_TRUE(has_guard(preloads_in("LD_PRELOAD=a.so /x/libfirebreak-guard.so:b.so")));
  EXPECT_FALSE(has_guard(preloads_in("LD_PRELOAD=")));
  EXPECT_FALSE(has_guard(preloads_in("LD_PRELOAD=/x/libfirebreak-guard.so.old")));
}

TEST(PassingOn, LeavesTheOthersInTheirOrder) {
  EXPECT_EQ(without("LD_PRELOAD=/x/libfirebreak-guard.so"), "");
  EXPECT_EQ(without("LD_PRELOAD=:/x/libfirebreak-guard.so: "), "");
  EXPECT_EQ(without("LD_PRELOAD=a.so /x/libfirebreak-guard.so:b.so"), "LD_PRELOAD=a.so:b.so");
  EXPECT_EQ(without("LD_PRELOAD=/x/libfirebreak-guard.so:/y/libfirebreak-guard.so:c"), "LD_PRELOAD=c");
}

}  // namespace
}  // namespace firebreak::guard
