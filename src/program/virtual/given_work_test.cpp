// SPDX-License-Identifier: Apache-2.0
// What has not ended, and what of it may have begun.
#include "program/virtual/given_work.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace firebreak::virtual_driver {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Operations are told apart by the value that they fill with.
class GivenWorkTest : public testing::Test {
 protected:
  void give(Work& work, std::uint32_t value) {
    work.queued.fetch_add(1);
    given.fill(work, one_row(0x1000, 4), value, 4);
  }
  /// "3", "3 ended", "3 not begun", "3 seen" of each; "given back".
  std::vector<std::string> under_way() {
    const std::vector<Work*> works{&one, &other};
    const auto found = given.under_way(works);
    if (!found) return {found.error().message};
    std::vector<std::string> told;
    for (const auto& each : found->entries) {
      const redo::RedoEntry& entry = found->log.entries.at(each.index);
      std::string text =
          entry.cause == abi::RedoCause::GivenBack ? "given back" : std::to_string(entry.body.fill.value);
      if (each.has_ended) text += " ended";
      if (!each.may_have_begun) text += " not begun";
      if (each.may_be_seen) text += " seen";
      told.push_back(text);
    }
    return told;
  }

  GivenWork given;
  Work one;
  Work other;
};

TEST_F(GivenWorkTest, IsAllThatNobodyHasSeenTheEndOf) {
  EXPECT_THAT(under_way(), IsEmpty());
  give(one, 1);
  give(one, 2);
  EXPECT_THAT(under_way(), ElementsAre("1", "2"));
  one.end(1);
  EXPECT_THAT(under_way(), ElementsAre("2"));
  one.end(2);
  EXPECT_THAT(under_way(), IsEmpty());
}

// What has ended may rest on what nobody knows the end of.
TEST_F(GivenWorkTest, WhatWasGivenAfterItIsThereThoughItHasEnded) {
  give(other, 1);
  give(one, 2);
  give(other, 3);
  give(one, 4);
  other.end(2);
  EXPECT_THAT(under_way(), ElementsAre("2", "3 ended", "4"));
  one.end(1);
  EXPECT_THAT(under_way(), ElementsAre("4"));
}

TEST_F(GivenWorkTest, WhatCameBeforeTheProgramSawAnEndIsSeen) {
  give(one, 1);
  given.seen();
  give(one, 2);
  EXPECT_THAT(under_way(), ElementsAre("1 seen", "2"));
}

// Whatever was given after that has other code and memory.
TEST_F(GivenWorkTest, WhatIsGivenBackLiesBetweenWhatWasGivenBeforeAndAfterIt) {
  give(one, 1);
  give(other, 2);
  given.given_back();
  give(one, 3);
  EXPECT_THAT(under_way(), ElementsAre("1", "2", "given back ended", "3"));
  other.end(1);
  one.end(1);
  EXPECT_THAT(under_way(), ElementsAre("3"));
}

TEST_F(GivenWorkTest, WhatIsBehindAMarkThatIsNotThereHasNotBegun) {
  give(one, 1);
  given.mark(one);
  give(one, 2);
  give(other, 3);
  given.mark(one);
  give(one, 4);
  EXPECT_THAT(under_way(), ElementsAre("1", "2 not begun", "3", "4 not begun"));
  one.end(1);
  EXPECT_THAT(under_way(), ElementsAre("2", "3", "4 not begun"));
}

TEST_F(GivenWorkTest, WhatItDoesNotReachBackToIsTold) {
  give(other, 1);
  for (std::uint32_t i = 0; i < 20'000; ++i) give(one, i);
  one.end(19'999);
  EXPECT_THAT(under_way(), ElementsAre("more was under way than what is noted"));
  other.end(1);
  EXPECT_THAT(under_way(), ElementsAre("19999"));
}

TEST_F(GivenWorkTest, BytesThatAreTooManyCannotBeGivenAgain) {
  const std::vector<std::byte> bytes(abi::redo_payload_max + 1);
  given.upload(one, 0x1000, std::span(bytes).first(abi::redo_payload_max));
  given.upload(one, 0x1000, bytes);
  one.queued.fetch_add(2);
  const std::vector<Work*> works{&one};
  const auto found = given.under_way(works);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->entries.size(), 2U);
  EXPECT_EQ(found->log.entries.at(found->entries[0].index).kind, abi::RedoKind::Upload);
  EXPECT_EQ(found->log.entries.at(found->entries[1].index).kind, abi::RedoKind::CannotRedo);
  EXPECT_EQ(found->log.entries.at(found->entries[1].index).cause, abi::RedoCause::HostMemory);
}

}  // namespace
}  // namespace firebreak::virtual_driver
