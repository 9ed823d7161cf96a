// SPDX-License-Identifier: Apache-2.0
#include "commands/nri/runtime_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ground/os/file.h"
#include "tests/doubles/nri/runtime_stand_in.h"

namespace firebreak::nri {
namespace {

namespace api = ::nri::pkg::api::v1alpha1;

using testing::AnyOf;
using testing::HasSubstr;
using testing::SizeIs;

/// Time stands still but for advance().
class RuntimeLinkTest : public testing::Test {
 protected:
  os::TemporaryDirectory files = std::move(os::TemporaryDirectory::create().value());
  std::string path = files.path() + "/nri.sock";
  FakeClock clock;
  std::unique_ptr<os::EventLoop> loop = std::move(os::EventLoop::create().value());
  std::vector<std::string> lines;
  Result<std::optional<seats::SeatGrant>> seat = seats::SeatGrant{{{"A", "b"}}, {}};
  RuntimeLink link{path,
                   {*loop, clock, [this](const Newcomer&) { return seat; },
                    [this](const std::string& line) { lines.push_back(line); }}};
  std::unique_ptr<RuntimeStandIn> runtime;

  void start_runtime(RuntimeStandIn::Habits habits = {}) {
    runtime = std::make_unique<RuntimeStandIn>(path, habits);
  }
  /// Both go on until then; false: nothing moves any more, for some seconds.
  bool until(const std::function<bool()>& holds) {
    for (int idle = 0; idle < 500; ++idle) {
      if (runtime) runtime->look();
      if (holds()) return true;
      if (loop->run_once(Milliseconds(10))) idle = 0;
    }
    return false;
  }
  bool is_configured() {
    return until([&] { return runtime->is_configured() && said("stand-in 1.0 asks for each container"); });
  }
  bool said(const std::string& line) const { return !lines.empty() && lines.back() == line; }
  void advance(Nanoseconds by) {
    clock.advance(by);
    link.look();
  }
  void connect() {
    start_runtime();
    link.look();
    ASSERT_TRUE(is_configured());
  }
  ttrpc::Response answer_to(std::uint32_t stream) {
    EXPECT_TRUE(until([&] { return runtime->answer(stream).has_value(); }));
    return runtime->answer(stream).value_or(ttrpc::Response());
  }
};

TEST_F(RuntimeLinkTest, WaitsForARuntimeWithOneLineAndRegistersThen) {
  link.look();
  link.look();
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines[0], HasSubstr("waits for a runtime: "));
  connect();
  EXPECT_EQ(runtime->events(), 8);
  ASSERT_THAT(runtime->registrations(), SizeIs(1));
  EXPECT_EQ(runtime->registrations()[0].plugin_name(), "firebreak");
  EXPECT_THAT(lines, SizeIs(2));
}

TEST_F(RuntimeLinkTest, AnswersForEachContainer) {
  connect();
  for (int i = 0; i < 3; ++i) {
    api::CreateContainerResponse response;
    ASSERT_TRUE(response.ParseFromString(answer_to(runtime->create({})).payload()));
    EXPECT_EQ(response.adjust().env(0).key(), "A");
  }
  seat = fail(ErrorCode::NotFound, "there is no domain 'z'");
  EXPECT_EQ(answer_to(runtime->create({})).status().message(), "there is no domain 'z'");
  EXPECT_THAT(lines.back(), HasSubstr("is refused: there is no domain 'z'"));
}

TEST_F(RuntimeLinkTest, RegistersAgainWithARuntimeThatRestarts) {
  connect();
  for (int i = 0; i < 3; ++i) {
    runtime.reset();
    ASSERT_TRUE(until([&] { return said("the runtime has ended the connection"); }));
    start_runtime();
    advance(RuntimeLink::first_pause);
    ASSERT_TRUE(is_configured());
    EXPECT_EQ(answer_to(runtime->create({})).status().code(), 0);
  }
}

TEST_F(RuntimeLinkTest, RegistersAgainWhereARuntimeEndsInTheMidstOfAMessage) {
  connect();
  runtime->send(call_bytes(9, "Synchronize", "").substr(0, 15));
  runtime->hang_up();
  ASSERT_TRUE(until([&] { return said("the runtime ended in the midst of a message"); }));
  advance(RuntimeLink::first_pause);
  EXPECT_TRUE(is_configured());
}

TEST_F(RuntimeLinkTest, EndsAConnectionThatSpeaksSomethingElse) {
  connect();
  runtime->send("HTTP/1.1 400 Bad Request\r\n\r\n");
  ASSERT_TRUE(until(
      [&] { return !runtime->has_plugin() && lines.back().find("bytes: more than") != std::string::npos; }));
  advance(RuntimeLink::first_pause);
  EXPECT_TRUE(is_configured());
}

TEST_F(RuntimeLinkTest, TriesARuntimeThatRefusesLessAndLessOften) {
  start_runtime({.refuses_with = "no plugins here"});
  link.look();
  const auto refused = [&](std::size_t times) {
    return until([&] { return runtime->registrations().size() == times && !runtime->has_plugin(); });
  };
  ASSERT_TRUE(refused(1));
  Nanoseconds pause = RuntimeLink::first_pause;
  for (std::size_t times = 2; times < 12; ++times) {
    advance(pause - Milliseconds(1));
    for (int looks = 0; looks < 3; ++looks) runtime->look();  // it would see one at once
    EXPECT_EQ(runtime->registrations().size(), times - 1) << "not yet";
    advance(Milliseconds(1));
    ASSERT_TRUE(refused(times));
    pause = std::min(pause * 2, RuntimeLink::longest_pause);
  }
  EXPECT_EQ(lines, std::vector<std::string>{"the runtime refuses the plugin: no plugins here"});
}

TEST_F(RuntimeLinkTest, EndsWithARuntimeThatNeverAnswersARegistration) {
  start_runtime({.answers_registrations = false, .refuses_with = {}});
  link.look();
  ASSERT_TRUE(until([&] { return !runtime->registrations().empty(); }));
  advance(RuntimeLink::registration_patience - Milliseconds(1));
  EXPECT_TRUE(lines.empty());
  advance(Milliseconds(1));
  EXPECT_TRUE(said("the runtime has not taken the plugin in time"));
  EXPECT_TRUE(until([&] { return !runtime->has_plugin(); }));
}

}  // namespace
}  // namespace firebreak::nri
