// SPDX-License-Identifier: Apache-2.0
#include "stage/stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "ground/os/real_kernel.h"

namespace firebreak::stage {
namespace {

constexpr Milliseconds patience{60'000};

class StageTest : public testing::Test {
 protected:
  os::RealKernel kernel;
  SystemClock clock;
  std::unique_ptr<Stage> stage = std::move(Stage::create(kernel, clock).value());
};

TEST_F(StageTest, ASignalEndsTheWaiting) {
  ::kill(::getpid(), SIGTERM);
  const Status waited = stage->wait("what never happens", patience, [] { return false; });
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().code, ErrorCode::Unavailable);
  EXPECT_TRUE(stage->interrupted());
}

TEST_F(StageTest, WhatIsWaitedForAfterASignalIsWaitedFor) {
  ::kill(::getpid(), SIGTERM);
  EXPECT_FALSE(stage->wait("what never happens", patience, [] { return false; }));
  auto actor = stage->enter({"sleeper", "sleeper", {"sleep", "0.05"}, {}}).value();
  EXPECT_TRUE(stage->wait("the sleeper's end", patience, [&] { return actor->ended(); }));
  EXPECT_TRUE(actor->ended());
}

TEST_F(StageTest, WaitingEndsByItselfAndSaysWhoEndedMeanwhile) {
  auto actor = stage->enter({"loser", "tenant", {"sh", "-c", "echo no luck >&2; exit 3"}, {}}).value();
  ASSERT_TRUE(stage->wait("its end", patience, [&] { return actor->ended(); }));
  const Status waited = stage->wait("a miracle", Milliseconds(1), [] { return false; });
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().code, ErrorCode::Timeout);
  EXPECT_THAT(waited.error().message, testing::HasSubstr("loser (tenant) has ended: no luck"));
}

}  // namespace
}  // namespace firebreak::stage
