// SPDX-License-Identifier: Apache-2.0
#include "ground/os/rights_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "ground/os/event_loop.h"
#include "ground/os/looks.h"
#include "ground/os/memory.h"
#include "ground/os/processes.h"
#include "ground/os/real_kernel.h"
#include "ground/os/self.h"
#include "tests/doubles/os/orphan_test_support.h"

namespace firebreak::os {
namespace {

constexpr Milliseconds long_enough{60'000};

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

/// The process behind the program of a keeper, spoken to as anybody might.
struct KeeperProcess : testing::Test {
  struct HelperEnds {
    Socket socket;
    Fd process;
  };
  void SetUp() override {
    auto ends = socket_pair().value();
    SpawnRequest request;
    request.command = {FIREBREAK_TEST_LOOKS};
    request.inherited = {{ends.second.fd().get(), RightsKeeper::socket_descriptor}};
    pid = spawn_process(request).value();
    process = RealKernel().pidfd_open(pid).value();
    socket.emplace(std::move(ends.first));
    ASSERT_TRUE(socket->receive(long_enough));
  }
  void TearDown() override {
    socket.reset();
    expect_end(process);
    (void)RealKernel().try_wait(pid);
  }
  static void expect_end(const Fd& of) {
    const int number = of.get();
    ASSERT_GE(number, 0);
    EXPECT_FALSE(poll_readable(std::span(&number, 1), long_enough).value().empty());
  }
  void say(std::string_view text, std::vector<int> descriptors) {
    EXPECT_TRUE(socket->send(bytes_of(text), descriptors, long_enough));
  }
  /// Questions are answered in their order, so all that was said before has been read.
  HelperEnds helper() {
    auto ends = socket_pair().value();
    say("helper", {ends.second.fd().get()});
    (void)ends.second.release();
    auto started = await_helper(ends.first, long_enough);
    if (!started) ADD_FAILURE() << started.error().message;
    return {std::move(ends.first), started ? std::move(*started) : Fd()};
  }
  pid_t pid = 0;
  Fd process;
  std::optional<Socket> socket;
};

TEST_F(KeeperProcess, StartsNothingForWhatItIsNotToBeAsked) {
  const Fd file = memory_file_with("x").value();
  auto ends = socket_pair().value();
  const int one = ends.second.fd().get();
  say("helper", {});
  say("helper", {one, one});
  say("helper", {file.get()});
  say("helper ", {one});
  say("stop\n1", {one});
  say(std::string(most_bytes_in_a_message, 'x'), {one});
  const auto only = helper();
  RealKernel kernel;
  EXPECT_THAT(children_of(kernel, pid), testing::ElementsAre(process_behind(only.process)));
  EXPECT_EQ(ends.first.receive(Milliseconds(0)).error().code, ErrorCode::Timeout);
  EXPECT_EQ(socket->receive(Milliseconds(0)).error().code, ErrorCode::Timeout) << "nothing was answered";
}

TEST_F(KeeperProcess, EndsWithWhoAsksAndItsHelpersWithIt) {
  const auto one = helper();
  socket.reset();
  expect_end(process);
  expect_end(one.process);
}

TEST_F(KeeperProcess, EndsWithWhoStartedItAlsoWhereOthersHaveItsSocket) {
  if (!is_root()) GTEST_SKIP() << "only root becomes another user";
  std::shared_ptr<RightsKeeper> theirs;
  EXPECT_TRUE(ends_with_who_started_it([&theirs] {
    theirs = RightsKeeper::start({FIREBREAK_TEST_LOOKS}, long_enough).value();
    return theirs->pid();
  }));
}

TEST_F(KeeperProcess, DoesNotEndWhereOthersAreToldTo) {
  for (const int each : {SIGTERM, SIGINT, SIGHUP}) ::kill(pid, each);
  EXPECT_TRUE(helper().process);
}

TEST_F(KeeperProcess, RefusesMoreHelpersThanItMayHave) {
  std::vector<HelperEnds> all;
  while (all.size() < RightsKeeper::most_helpers) all.push_back(helper());
  auto ends = socket_pair().value();
  say("helper", {ends.second.fd().get()});
  EXPECT_EQ(await_helper(ends.first, long_enough).error().code, ErrorCode::ResourceExhausted);
  all.back().socket.hang_up();
  expect_end(all.back().process);
  EXPECT_TRUE(helper().process);
}

}  // namespace
}  // namespace firebreak::os
