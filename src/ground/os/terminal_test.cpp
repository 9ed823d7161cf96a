// SPDX-License-Identifier: Apache-2.0
#include "ground/os/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <string>

#include "ground/os/fd.h"

namespace firebreak::os {
namespace {

/// A child that leads a session with a terminal of its own, as a shell does.
struct ControllingTerminal : testing::Test {
  void SetUp() override {
    ASSERT_TRUE(keyboard);
    ASSERT_EQ(::grantpt(keyboard.get()), 0);
    ASSERT_EQ(::unlockpt(keyboard.get()), 0);
    name = ::ptsname(keyboard.get());
  }
  static bool holds_in_a_child(const std::function<bool()>& what) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(what() ? 0 : 1);
    int status = -1;
    return ::waitpid(child, &status, 0) == child && status == 0;
  }
  bool holds_in_its_session(const std::function<bool()>& what) const {
    return holds_in_a_child([&] {
      if (::setsid() < 0) return false;
      const int terminal = ::open(name.c_str(), O_RDWR);
      for (const int number : {0, 1, 2}) {
        if (::dup2(terminal, number) != number) return false;
      }
      return has_one() && what();
    });
  }
  static bool has_one() { return Fd(::open("/dev/tty", O_RDWR | O_CLOEXEC)).get() >= 0; }
  static bool has_left_it() {
    char byte = 0;
    const auto is_open_to = [](int number, int how) {
      return (::fcntl(number, F_GETFL) & O_ACCMODE) == how && (::isatty(number) == 1) == (how == O_WRONLY);
    };
    return leave_terminal() && !has_one() && errno == ENXIO && ::read(0, &byte, 1) == 0 &&
           is_open_to(0, O_RDONLY) && is_open_to(1, O_WRONLY) && is_open_to(2, O_WRONLY) &&
           ::write(1, "x", 1) == 1;
  }
  Fd keyboard{::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)};
  std::string name;
};

TEST_F(ControllingTerminal, IsLeftByWhoLeadsTheSession) {
  EXPECT_TRUE(holds_in_its_session([] { return has_left_it(); }));
}

TEST_F(ControllingTerminal, IsLeftByWhoLeadsAGroup) {
  EXPECT_TRUE(holds_in_its_session(
      [] { return holds_in_a_child([] { return ::setpgid(0, 0) == 0 && has_left_it(); }); }));
}

/// A keyboard's signals are the group's.
TEST_F(ControllingTerminal, IsLeftWithoutLeavingTheGroup) {
  EXPECT_TRUE(holds_in_its_session([] {
    return holds_in_a_child([] {
      const pid_t group = ::getpgrp();
      return has_left_it() && ::getpgrp() == group;
    });
  }));
}

TEST_F(ControllingTerminal, WhoHasNoneLosesNothing) {
  EXPECT_TRUE(holds_in_a_child([] { return ::setsid() > 0 && leave_terminal() && !has_one(); }));
}

}  // namespace
}  // namespace firebreak::os
