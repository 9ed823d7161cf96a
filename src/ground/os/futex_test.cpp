// SPDX-License-Identifier: Apache-2.0
#include "ground/os/memory.h"

#include <gtest/gtest.h>

#include <thread>

namespace firebreak::os {
namespace {

TEST(Futex, ReturnsAtOnceWhenTheValueIsAnother) {
  const std::atomic<std::uint32_t> word{1};
  EXPECT_TRUE(futex_wait(word, 0, std::nullopt));
}

TEST(Futex, TimesOut) {
  const std::atomic<std::uint32_t> word{0};
  EXPECT_FALSE(futex_wait(word, 0, Milliseconds(1)));
  EXPECT_FALSE(futex_wait(word, 0, Nanoseconds(-5)));
}

TEST(Futex, WakesASleeperOfAnotherThread) {
  std::atomic<std::uint32_t> word{0};
  std::thread sleeper([&] {
    while (word.load() == 0) futex_wait(word, 0, std::nullopt);
  });
  word.store(1);
  futex_wake(word);
  sleeper.join();
  EXPECT_EQ(word.load(), 1u);
}

TEST(Futex, CountsWhomItWoke) {
  std::atomic<std::uint32_t> word{0};
  EXPECT_EQ(futex_wake(word), 0);
}

}  // namespace
}  // namespace firebreak::os
