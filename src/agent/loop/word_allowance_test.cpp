// SPDX-License-Identifier: Apache-2.0
#include "agent/loop/word_allowance.h"

#include <gtest/gtest.h>

namespace firebreak::agent {
namespace {

constexpr std::chrono::seconds second(1);

TEST(WordAllowanceTest, SoManyLinesAtOnceAndOneMoreEachSecond) {
  FakeClock clock;
  WordAllowance words;
  std::size_t lines = 0;
  for (int i = 0; i < 1'000; ++i) lines += words.take(clock.now()) ? 1 : 0;
  EXPECT_EQ(lines, static_cast<std::size_t>(WordAllowance::most));
  clock.advance(second);
  EXPECT_EQ(words.take(clock.now()), 1'000u - lines) << "those that were left out are counted";
  EXPECT_FALSE(words.take(clock.now()));
  clock.advance(60 * second);
  lines = 0;
  for (int i = 0; i < 1'000; ++i) lines += words.take(clock.now()) ? 1 : 0;
  EXPECT_EQ(lines, static_cast<std::size_t>(WordAllowance::most)) << "no more are saved up";
}

TEST(WordAllowanceTest, IsWholeAgainOnlyOnceAllThatWasLeftOutIsTold) {
  FakeClock clock;
  clock.advance(1'000 * second);
  WordAllowance words;
  for (int i = 0; i < 20; ++i) (void)words.take(clock.now());
  EXPECT_FALSE(words.is_whole(clock.now()));
  clock.advance(100 * second);
  EXPECT_FALSE(words.is_whole(clock.now()));
  (void)words.take(clock.now());
  clock.advance(100 * second);
  EXPECT_TRUE(words.is_whole(clock.now()));
}

}  // namespace
}  // namespace firebreak::agent
