// SPDX-License-Identifier: Apache-2.0
#include "ground/os/capabilities.h"

#include <grp.h>
#include <gtest/gtest.h>
#include <sched.h>
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

/// Rights are given up for good, so each test does so in a process of its own.
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

/// A child becomes user 65531, of groups 65532 and 65533, with two capabilities.
struct OwnUser : Capabilities {
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root becomes another user";
  }
  static bool holds(const std::function<bool()>& what) {
    return holds_in_a_child([&what] {
      constexpr std::array kept{Capability::Kill, Capability::Syslog};
      return become_user({65531, 65532, {65533}}, kept) && what();
    });
  }
};

TEST_F(OwnUser, HasItsNumbersInEachWay) {
  EXPECT_TRUE(holds([] {
    std::array<uid_t, 3> users{};
    std::array<gid_t, 3> groups{};
    return ::getresuid(&users[0], &users[1], &users[2]) == 0 &&
           users == std::array<uid_t, 3>{65531, 65531, 65531} &&
           ::getresgid(&groups[0], &groups[1], &groups[2]) == 0 &&
           groups == std::array<gid_t, 3>{65532, 65532, 65532};
  }));
}

TEST_F(OwnUser, HasNoGroupsButThose) {
  EXPECT_TRUE(holds_in_a_child([] {
    const gid_t root = 0;
    if (::setgroups(1, &root) != 0) return false;
    gid_t only = 0;
    return become_user({65531, 65532, {65533}}, {}) && ::getgroups(1, &only) == 1 && only == 65533;
  }));
}

TEST_F(OwnUser, HasThoseCapabilitiesAlone) {
  EXPECT_TRUE(holds([] {
    return has_capability(Capability::Kill) && !has_capability(Capability::SysAdmin) &&
           !has_capability(Capability::DacOverride) && !has_capability(Capability::Chown) &&
           !has_capability(Capability::SetPcap);
  }));
}

TEST_F(OwnUser, IsNotRootAgain) {
  EXPECT_TRUE(holds([] { return ::setuid(0) != 0 && ::setgid(0) != 0 && ::access("/root", R_OK) != 0; }));
}

TEST_F(OwnUser, ProgramsOfItGetNoMore) {
  EXPECT_TRUE(holds([] {
    return ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 && ::prctl(PR_GET_KEEPCAPS, 0, 0, 0, 0) == 0;
  }));
}

TEST_F(OwnUser, IsNotRoot) {
  EXPECT_FALSE(user_named("root"));
  EXPECT_FALSE(user_named("0"));
  EXPECT_FALSE(user_named("no such user"));
  EXPECT_EQ(user_named("65531")->uid, 65531U);
  EXPECT_FALSE(become_user({0, 65532}, {}));
  EXPECT_FALSE(become_user({65531, 0}, {}));
}

TEST_F(OwnUser, MayBeWokenPromptly) {
  if (!allow_prompt_waking()) GTEST_SKIP() << "nobody here may allow that";
  EXPECT_TRUE(holds([] {
    const sched_param lowest{1};
    return ::sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &lowest) == 0;
  }));
}

}  // namespace
}  // namespace firebreak::os
