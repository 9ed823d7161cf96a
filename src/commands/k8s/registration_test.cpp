// SPDX-License-Identifier: Apache-2.0
#include "commands/k8s/registration.h"

#include <gtest/gtest.h>

namespace firebreak::k8s {
namespace {

class RegistrationTest : public testing::Test {
 protected:
  FakeClock clock;
  Registration registration;
  KubeletLook look;

  bool is_due() { return registration.is_due(look, clock.now()); }
  void note(bool is_registered) {
    registration.note(is_registered, clock.now());
    look.has_own_socket = true;
  }
  /// Registers, and the kubelet watches.
  void register_with(std::uint64_t inode) {
    look.kubelet = SocketIdentity{1, inode, 0};
    ASSERT_TRUE(is_due());
    note(true);
    look.watchers = 1;
    ASSERT_FALSE(is_due());
  }
};

TEST_F(RegistrationTest, WaitsForAKubelet) {
  clock.advance(std::chrono::hours(1));
  EXPECT_FALSE(is_due());
  look.kubelet = SocketIdentity{1, 7, 0};
  EXPECT_TRUE(is_due());
}

TEST_F(RegistrationTest, OnceIsEnoughForAKubeletThatWatches) {
  register_with(7);
  for (int hour = 0; hour < 24; ++hour) {
    clock.advance(std::chrono::hours(1));
    EXPECT_FALSE(is_due());
  }
}

TEST_F(RegistrationTest, AKubeletThatCameAnewIsAskedAtOnce) {
  register_with(7);
  look = {SocketIdentity{1, 8, 0}, true, 0};
  EXPECT_TRUE(is_due());
  note(true);
  look.watchers = 1;
  look.kubelet->changed_ns = 5;  // the number was given out again
  EXPECT_TRUE(is_due());
}

TEST_F(RegistrationTest, IsDueAgainWhereOurSocketWasTakenAway) {
  register_with(7);
  clock.advance(std::chrono::seconds(1));
  look.has_own_socket = false;
  EXPECT_TRUE(is_due());
}

TEST_F(RegistrationTest, AKubeletThatHasGoneIsNotAskedAndItsReturnIs) {
  register_with(7);
  look = {std::nullopt, false, 0};
  clock.advance(std::chrono::hours(1));
  EXPECT_FALSE(is_due());
  register_with(8);
}

TEST_F(RegistrationTest, AStreamThatNobodyOpensOrThatEndsIsAskedForAgain) {
  look.kubelet = SocketIdentity{1, 7, 0};
  ASSERT_TRUE(is_due());
  note(true);
  EXPECT_FALSE(is_due());
  clock.advance(Registration::watch_patience);
  EXPECT_TRUE(is_due());
  note(true);
  look.watchers = 1;
  EXPECT_FALSE(is_due());
  clock.advance(std::chrono::hours(1));
  EXPECT_FALSE(is_due());
  look.watchers = 0;
  EXPECT_FALSE(is_due());
  clock.advance(Registration::watch_patience);
  EXPECT_TRUE(is_due());
}

TEST_F(RegistrationTest, WhatFailsIsTriedLessAndLessOften) {
  look.kubelet = SocketIdentity{1, 7, 0};
  int tries = 0;
  for (Nanoseconds passed{0}; passed < std::chrono::hours(1); passed += Registration::first_pause) {
    if (is_due()) {
      ++tries;
      note(false);
    }
    clock.advance(Registration::first_pause);
  }
  const auto least = std::chrono::hours(1) / Registration::longest_pause;
  EXPECT_GE(tries, least);
  EXPECT_LE(tries, least + 10);
  look.kubelet->inode = 8;
  EXPECT_TRUE(is_due()) << "a new kubelet does not wait for what the last one did";
}

TEST_F(RegistrationTest, AKubeletThatTakesUsAndNeverWatchesIsAskedLessAndLessOften) {
  look.kubelet = SocketIdentity{1, 7, 0};
  int tries = 0;
  for (int second = 0; second < 3600; ++second) {
    if (is_due()) {
      ++tries;
      note(true);
    }
    clock.advance(std::chrono::seconds(1));
  }
  EXPECT_GE(tries, 100);
  EXPECT_LE(tries, 130);
}

}  // namespace
}  // namespace firebreak::k8s
