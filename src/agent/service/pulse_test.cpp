// SPDX-License-Identifier: Apache-2.0
#include "agent/service/pulse.h"

#include <sys/eventfd.h>

#include "ground/os/self.h"
#include "tests/doubles/agent/agent_test_support.h"

namespace firebreak::agent {
namespace {

struct PulseTest : testing::Test {
  std::unique_ptr<os::EventLoop> loop = std::move(os::EventLoop::create().value());
  FakeServiceManager manager;
  SystemClock clock;

  std::unique_ptr<Pulse> begin(std::optional<Nanoseconds> limit) {
    manager.limit = limit;
    return std::move(Pulse::begin(*loop, clock, manager).value());
  }
  /// Turns without anything else to serve; the test's own time limit bounds it.
  void turn_until_signs(int wanted) {
    while (manager.signs < wanted) loop->run_once(std::nullopt);
  }
  void let_pass(Nanoseconds time) const {
    for (const Monotonic begun = clock.now(); clock.now() - begun < time;) {
    }
  }
};

TEST_F(PulseTest, ALoopThatTurnsGivesSignsAgainAndAgain) {
  const auto pulse = begin(Milliseconds(4));
  turn_until_signs(5);
}

TEST_F(PulseTest, WhatKeepsTheLoopGivesNoneHoweverLongItTakes) {
  const auto pulse = begin(Milliseconds(4));
  int signs_meanwhile = -1;
  loop->post([&] {
    const int before = manager.signs;
    let_pass(Milliseconds(20));
    signs_meanwhile = manager.signs - before;
  });
  while (signs_meanwhile < 0) loop->run_once(std::nullopt);
  EXPECT_EQ(signs_meanwhile, 0);
}

/// The timer's turn may come in the midst of it: what is served behind that may hang.
TEST_F(PulseTest, NoneIsGivenBeforeTheTurnIsOver) {
  const auto pulse = begin(Milliseconds(4));
  turn_until_signs(1);
  const os::Fd first(::eventfd(0, EFD_CLOEXEC)), last(::eventfd(0, EFD_CLOEXEC));
  std::vector<int> seen;
  const auto see = [&] { seen.push_back(manager.signs); };
  const os::Watch first_watch = loop->watch_readable(first.get(), see).value();
  const os::Watch last_watch = loop->watch_readable(last.get(), see).value();
  ASSERT_EQ(::eventfd_write(first.get(), 1), 0);
  let_pass(Milliseconds(20));  // now it rings, between the two
  ASSERT_EQ(::eventfd_write(last.get(), 1), 0);
  ASSERT_TRUE(loop->run_once(std::nullopt));
  EXPECT_THAT(seen, testing::ElementsAre(1, 1));
  EXPECT_EQ(manager.signs, 2);
}

TEST_F(PulseTest, ABusyLoopDoesNotGiveOneATurn) {
  const auto pulse = begin(std::chrono::hours(1));
  for (int turn = 0; turn < 1000; ++turn) {
    loop->post([] {});
    loop->run_once(std::nullopt);
  }
  EXPECT_EQ(manager.signs, 0);
}

TEST_F(PulseTest, WhereNobodyWantsThemThereAreNone) {
  EXPECT_EQ(begin(std::nullopt), nullptr);
  loop->post([this] { let_pass(Milliseconds(5)); });
  loop->run_once(std::nullopt);
  EXPECT_EQ(manager.signs, 0);
}

/// The signs are those of sd_notify(3).
struct SignsOfLife : testing::Test {
  os::TemporaryDirectory directory = std::move(os::TemporaryDirectory::create().value());
  std::string path = directory.path() + "/notify";
  os::Socket notify = std::move(os::bind_datagrams(path).value());

  std::string received() {
    const auto message = notify.receive(Milliseconds(0));
    if (!message) return "(none)";
    return {reinterpret_cast<const char*>(message->bytes.data()), message->bytes.size()};
  }
  os::EnvironmentScope environment(const std::string& limit_us, const std::string& pid) const {
    return os::EnvironmentScope(os::EnvironmentScope::Variables{
        {"NOTIFY_SOCKET", path}, {"WATCHDOG_USEC", limit_us}, {"WATCHDOG_PID", pid}});
  }
};

TEST_F(SignsOfLife, AreWantedAsOftenAsTheEnvironmentSaysAndOfThisProcessAlone) {
  const std::string own = std::to_string(::getpid());
  {
    const auto scope = environment("1500000", own);
    const auto manager = find_service_manager();
    EXPECT_EQ(manager->ends_the_silent_after(), Milliseconds(1500));
    EXPECT_FALSE(os::environment_variable("WATCHDOG_USEC")) << "whoever we start would take it for its own";
  }
  {
    const auto scope = environment("1500000", "1");
    EXPECT_FALSE(find_service_manager()->ends_the_silent_after());
  }
  const auto scope = environment("0", own);
  EXPECT_FALSE(find_service_manager()->ends_the_silent_after());
}

TEST_F(SignsOfLife, ReachTheManagerAndWaitForNobody) {
  const auto scope = environment("1500000", std::to_string(::getpid()));
  const auto manager = find_service_manager();
  // Many more than Linux keeps for a manager that does not read.
  for (int sign = 0; sign < 10'000; ++sign) manager->give_sign();
  EXPECT_EQ(received(), "WATCHDOG=1");
  while (received() != "(none)") {
  }
  manager->end_signs();
  EXPECT_EQ(received(), "WATCHDOG_USEC=0");
}

}  // namespace
}  // namespace firebreak::agent
