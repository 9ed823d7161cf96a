// SPDX-License-Identifier: Apache-2.0
#include "program/virtual/event_times.h"

#include <gmock/gmock.h>

namespace firebreak::virtual_driver {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::int64_t mark_ns = 10'000'000'000;

TEST(EventTimes, AreCountedBackFromTheMark) {
  EXPECT_THAT(
      times_of({{.before_next_ms = 2, .called_ns = 0}, {.before_next_ms = 1, .called_ns = 0}}, mark_ns),
      ElementsAre(mark_ns - 3'000'000, mark_ns - 1'000'000));
  EXPECT_THAT(times_of({}, mark_ns), IsEmpty());
}

/// As of two events of an hour ago, whose times before the mark are too coarse to tell them apart.
TEST(EventTimes, StayAsFarApartAsTheDriverSaysHoweverLongAgoTheyWere) {
  const double hour_ms = 3'600'000;
  const auto times =
      times_of({{.before_next_ms = 0.0625, .called_ns = 0}, {.before_next_ms = hour_ms}}, mark_ns);
  ASSERT_EQ(times.size(), 2U);
  EXPECT_EQ(times[1] - times[0], 62'500);
}

/// The mark waited for the GPU, so that all of them seem to be that much earlier.
TEST(EventTimes, AreNeverBeforeTheCallThatAskedForThem) {
  const std::int64_t called_ns = mark_ns - 500'000;
  EXPECT_THAT(times_of({{.before_next_ms = 1, .called_ns = 0}, {.before_next_ms = 1, .called_ns = called_ns}},
                       mark_ns),
              ElementsAre(called_ns - 1'000'000, called_ns));
}

}  // namespace
}  // namespace firebreak::virtual_driver
