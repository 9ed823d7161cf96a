// SPDX-License-Identifier: Apache-2.0
#include "agent/domains/mps/backoff.h"

#include <gtest/gtest.h>

namespace firebreak::mps {
namespace {

constexpr Nanoseconds at_once{0};

TEST(Backoff, DoublesUpToTheLongest) {
  Backoff backoff(Milliseconds(100), Milliseconds(500), std::chrono::minutes(1));
  for (const int expected : {100, 200, 400, 500, 500}) {
    EXPECT_EQ(backoff.after_failure(at_once), Milliseconds(expected));
  }
}

TEST(Backoff, BeginsAnewAfterALongLife) {
  Backoff backoff(Milliseconds(100), Milliseconds(500), std::chrono::minutes(1));
  backoff.after_failure(at_once);
  backoff.after_failure(at_once);
  EXPECT_EQ(backoff.after_failure(std::chrono::minutes(1)), Milliseconds(100));
  EXPECT_EQ(backoff.after_failure(at_once), Milliseconds(200));
}

}  // namespace
}  // namespace firebreak::mps
