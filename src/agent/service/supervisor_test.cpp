// SPDX-License-Identifier: Apache-2.0
/// A shell plays the agent; what it says to its manager it says with systemd's own tool or not at all.
#include "agent/service/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/un.h>

#include "agent/service/service_manager.h"
#include "ground/os/file.h"
#include "ground/os/memory.h"
#include "ground/os/real_kernel.h"
#include "ground/os/self.h"
#include "ground/os/socket.h"
#include "tests/doubles/os/tcp_test_support.h"

namespace firebreak::agent {
namespace {

class SupervisorTest : public testing::Test {
 protected:
  Result<int> run(const std::string& script, Nanoseconds silence = {}) {
    auto supervisor =
        Supervisor::create(kernel_, {FIREBREAK_SUPERVISED, script, file("state")}, file("notify"), silence);
    EXPECT_TRUE(supervisor) << supervisor.error().message;
    return (*supervisor)->run();
  }
  std::string file(const std::string& name) { return directory_.path() + "/" + name; }
  std::string content(const std::string& name) { return kernel_.read_file(file(name)).value_or("(none)"); }

  os::TemporaryDirectory directory_ = std::move(os::TemporaryDirectory::create().value());
  os::RealKernel kernel_;
};

TEST(NotifyState, IsTakenApartByLines) {
  EXPECT_EQ(value_in("FDSTORE=1\nFDNAME=a/b\nFDPOLL=0", "FDNAME"), "a/b");
  EXPECT_EQ(value_in("FDSTORE=1", "STORE"), "");
  EXPECT_EQ(value_in("READY=1\n", "READY"), "1");
  EXPECT_EQ(value_in("", "READY"), "");
}

TEST_F(SupervisorTest, WhoEndsInGoodOrderIsNotStartedAgain) {
  EXPECT_EQ(run("ready, exit 0").value(), 0);
  EXPECT_EQ(content("state"), "started with 0\n");
}

TEST_F(SupervisorTest, WhoNeverCameUpIsNotStartedAgain) {
  EXPECT_EQ(run("exit 3").value(), 3);
  EXPECT_EQ(content("state"), "started with 0\n");
}

TEST_F(SupervisorTest, WhoFailsGetsItsDescriptorsBackByTheirNames) {
  EXPECT_EQ(run("keep one, keep two, drop one, ready, die, exit 0").value(), 0);
  EXPECT_EQ(content("state"), "started with 0\nstarted with 1: two holds two\n");
}

TEST_F(SupervisorTest, WhatIsKeptAnewUnderANameReplacesIt) {
  EXPECT_EQ(run("keep one, keep one, ready, die, exit 0").value(), 0);
  EXPECT_EQ(content("state"), "started with 0\nstarted with 1: one holds one\n");
}

/// One of them would take the others away: the next agent gets all names in one variable.
TEST_F(SupervisorTest, WhatIsNoNameIsNotKept) {
  EXPECT_EQ(run("keep one, keep any:thing, keep two, ready, die, exit 0").value(), 0);
  EXPECT_EQ(content("state"), "started with 0\nstarted with 2: one holds one: two holds two\n");
}

TEST(NameOfAKeptDescriptor, IsPlain) {
  EXPECT_TRUE(may_be_a_name("a/b.c-1_2"));
  EXPECT_TRUE(may_be_a_name(std::string(255, 'n')));
  for (const std::string& name : {std::string(), std::string("a:b"), std::string("a b"), std::string("a\x7f"),
                                  std::string("a\0b", 3), std::string("\xc3\xa4"), std::string(256, 'n')})
    EXPECT_FALSE(may_be_a_name(name)) << name;
}

TEST_F(SupervisorTest, WhoIsNotTheAgentKeepsNothing) {
  EXPECT_EQ(run("keep one, stray, ready, die, exit 0").value(), 0);
  EXPECT_EQ(content("state"), "started with 0\nstarted with 1: one holds one\n");
}

/// Its last close() lasts as long as who made it likes, also of one that is not kept.
TEST_F(SupervisorTest, ADescriptorThatLingersKeepsNobodyWaiting) {
  auto supervisor = Supervisor::create(kernel_, {FIREBREAK_SUPERVISED, "ready, exit 0", file("state")},
                                       file("notify"), Nanoseconds(0));
  ASSERT_TRUE(supervisor);
  auto [connection, client, sent] = os::Loopback().lingering();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  file("notify").copy(address.sun_path, sizeof(address.sun_path) - 1);
  os::Fd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  const std::string state = "FDSTORE=1\nFDNAME=lingers";
  const int number = connection.get();
  ASSERT_TRUE(os::Socket(std::move(fd)).send(std::as_bytes(std::span(state)), std::span(&number, 1), {}));
  connection.reset();
  EXPECT_EQ((*supervisor)->run().value(), 0);
}

/// Their names together would be more than a program can be started with.
TEST_F(SupervisorTest, WhoKeptTooMuchIsStartedAgainWithPartOfIt) {
  EXPECT_EQ(run("fill 800, ready, die, exit 0").value(), 0);
  EXPECT_THAT(content("state"), testing::MatchesRegex("started with 0\nstarted with 6[0-9][0-9]\n"));
}

/// The agent may have been told so before it ever was up.
TEST_F(SupervisorTest, WhoMakesRoomForTheNextIsFollowedByIt) {
  EXPECT_EQ(run("keep one, leave, exit 0").value(), 0);
  EXPECT_EQ(content("state"), "started with 0\nstarted with 1: one holds one\n");
}

/// The signal is SIGKILL, since the agent is stopped and no other reaches it; it has kept what it had kept.
TEST_F(SupervisorTest, WhoHangsIsKilledAndFollowedByTheNextOne) {
  EXPECT_EQ(run("keep one, ready, hang, exit 0", Milliseconds(100)).value(), 0);
  EXPECT_EQ(content("state"), "started with 0\nstarted with 1: one holds one\n");
}

/// An agent that hangs is followed as often as one that dies.
TEST_F(SupervisorTest, WhoHangsAgainIsFollowedAgain) {
  EXPECT_EQ(run("keep one, ready, hang, keep two, ready, hang, exit 0", Milliseconds(100)).value(), 0);
  EXPECT_EQ(content("state"),
            "started with 0\nstarted with 1: one holds one\nstarted with 2: one holds one: two holds two\n");
}

TEST_F(SupervisorTest, WhoTakesItsTimeToComeUpDoesNotHang) {
  EXPECT_EQ(run("stay silent, ready, exit 0", Milliseconds(50)).value(), 0);
  EXPECT_EQ(content("state"), "started with 0\n");
}

TEST_F(SupervisorTest, WhoGivesSignsDoesNotHang) {
  EXPECT_EQ(run("ready, give signs, exit 0", Milliseconds(400)).value(), 0);
  EXPECT_EQ(content("state"), "started with 0\n");
}

TEST_F(SupervisorTest, WhoSaysThatItsSignsEndDoesNotHang) {
  EXPECT_EQ(run("ready, last sign given, stay silent, exit 0", Milliseconds(50)).value(), 0);
  EXPECT_EQ(content("state"), "started with 0\n");
}

TEST_F(SupervisorTest, NobodyHangsWhereItIsNotAskedFor) {
  EXPECT_EQ(run("no signs are wanted, ready, stay silent, exit 0", Milliseconds(0)).value(), 0);
  EXPECT_EQ(content("state"), "started with 0\n");
}

TEST_F(SupervisorTest, ASignalToItIsOneToTheAgentAndTheEnd) {
  EXPECT_EQ(run("ready, signal parent, wait").value(), 128 + SIGTERM);
  EXPECT_EQ(content("state"), "started with 0\n");
}

TEST(ServiceManager, WithoutOneNothingIsKept) {
  const os::EnvironmentScope nobody(os::EnvironmentScope::Variables{{"NOTIFY_SOCKET", ""}});
  const auto file = os::create_memory_file("any", 1);
  EXPECT_EQ(find_service_manager()->keep("any", file->get()).error().code, ErrorCode::Unsupported);
  EXPECT_FALSE(find_service_manager()->starts_the_next());
}

}  // namespace
}  // namespace firebreak::agent
