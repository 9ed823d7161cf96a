// SPDX-License-Identifier: Apache-2.0
#include "softgpu/machine/ring_follower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <vector>

namespace firebreak::softgpu {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// A ring whose holes a test can place.
struct Ring {
  std::uint64_t next = 0;
  std::uint64_t oldest = 0;
  std::map<std::uint64_t, int> whole;

  std::uint64_t next_sequence() const { return next; }
  std::uint64_t oldest_sequence() const { return oldest; }
  std::optional<int> read(std::uint64_t sequence) const {
    const auto found = whole.find(sequence);
    return found == whole.end() ? std::nullopt : std::optional(found->second);
  }
};

std::vector<int> collected(RingFollower& follower, const Ring& ring, std::int64_t now_ns) {
  std::vector<int> records;
  follower.collect(ring, now_ns, [&](int record) { records.push_back(record); });
  return records;
}

TEST(RingFollower, TakesEachRecordOnceFromItsStartOn) {
  Ring ring{3, 0, {{0, 10}, {1, 11}, {2, 12}}};
  RingFollower follower(1);
  EXPECT_THAT(collected(follower, ring, 1), ElementsAre(11, 12));
  EXPECT_THAT(collected(follower, ring, 2), IsEmpty());
  ring.whole[3] = 13;
  ring.next = 4;
  EXPECT_THAT(collected(follower, ring, 3), ElementsAre(13));
}

TEST(RingFollower, GoesOnWithTheOldestThatIsLeft) {
  RingFollower follower(0);
  EXPECT_THAT(collected(follower, {10, 8, {{8, 18}, {9, 19}}}, 1), ElementsAre(18, 19));
}

TEST(RingFollower, WaitsForARecordThatIsBeingWritten) {
  Ring ring{2, 0, {{1, 11}}};
  RingFollower follower(0);
  EXPECT_THAT(collected(follower, ring, 1), IsEmpty());
  ring.whole[0] = 10;
  EXPECT_THAT(collected(follower, ring, 2), ElementsAre(10, 11));
}

TEST(RingFollower, PassesAHoleWhoseWriterDied) {
  const Ring ring{2, 0, {{1, 11}}};
  RingFollower follower(0);
  EXPECT_THAT(collected(follower, ring, 1), IsEmpty());
  EXPECT_THAT(collected(follower, ring, RingFollower::hole_patience_ns), IsEmpty());
  EXPECT_EQ(follower.sleep_ns(1'000'000'000), RingFollower::hole_patience_ns);
  EXPECT_THAT(collected(follower, ring, 1 + RingFollower::hole_patience_ns), ElementsAre(11));
  EXPECT_EQ(follower.sleep_ns(1'000'000'000), 1'000'000'000);
}

}  // namespace
}  // namespace firebreak::softgpu
