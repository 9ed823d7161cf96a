// SPDX-License-Identifier: Apache-2.0
#include "os/capabilities.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>

namespace firebreak::os {
namespace {

constexpr auto number_of_ptrace = static_cast<unsigned long>(Capability::SysPtrace);

bool may_be_had_by_a_program() {
  return ::prctl(PR_CAPBSET_READ, number_of_ptrace, 0, 0, 0) == 1 &&
         ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0;
}

/// What is given up is given up for good, so each does so in a process of its own.
struct Capabilities : testing::Test {
  void SetUp() override {
    if (!has_capability(Capability::SysPtrace)) GTEST_SKIP() << "nobody here has that right";
  }
  static bool holds_in_a_child(const std::function<bool()>& what) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(what() ? 0 : 1);
    int status = -1;
    return ::waitpid(child, &status, 0) == child && status == 0;
  }
};

TEST_F(Capabilities, WhatIsGivenUpIsNotToBeHadAgain) {
  EXPECT_TRUE(holds_in_a_child([] {
    const Status given_up = give_up_capability(Capability::SysPtrace, [] { return true; });
    return given_up && !has_capability(Capability::SysPtrace) && !may_be_had_by_a_program();
  }));
}

TEST_F(Capabilities, ItIsNotThereWhileIsAskedWhetherAllIsWellWithoutIt) {
  EXPECT_TRUE(holds_in_a_child([] {
    bool is_there = true;
    (void)give_up_capability(Capability::SysPtrace, [&is_there] {
      is_there = has_capability(Capability::SysPtrace);
      return true;
    });
    return !is_there;
  }));
}

TEST_F(Capabilities, WhereNotAllIsWellWithoutItAllIsPutBack) {
  EXPECT_TRUE(holds_in_a_child([] {
    const bool before = may_be_had_by_a_program();
    const Status given_up = give_up_capability(Capability::SysPtrace, [] { return false; });
    return !given_up && given_up.error().code == ErrorCode::PermissionDenied &&
           has_capability(Capability::SysPtrace) && may_be_had_by_a_program() == before;
  }));
}

TEST_F(Capabilities, AllOthersAreGivenUpAtOnce) {
  EXPECT_TRUE(holds_in_a_child([] {
    constexpr std::array kept{Capability::SysPtrace};
    return give_up_all_capabilities_but(kept) && has_capability(Capability::SysPtrace) &&
           !has_capability(Capability::DacReadSearch) && !has_capability(Capability::SetPcap);
  }));
}

}  // namespace
}  // namespace firebreak::os
