// SPDX-License-Identifier: Apache-2.0
/// Tests of what a domain does with what another, killed agent left in its directories.
#include <signal.h>

#include "agent/domains/mps/domain.h"
#include "agent/domains/mps/leftovers.h"
#include "tests/doubles/mps/domain_test_support.h"

namespace firebreak::mps {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Ne;

class Takeover : public FakeDaemonTest {
 protected:
  DomainOptions taking_over() const {
    DomainOptions with = options();
    with.takes_over = true;
    with.command_timeout = Milliseconds(500);
    return with;
  }
  std::unique_ptr<Domain> started(DomainOptions with) {
    auto domain = Domain::start(kernel_, std::move(with));
    EXPECT_TRUE(domain) << to_string(domain.error());
    return domain ? std::move(*domain) : nullptr;
  }
};

TEST_F(Takeover, NothingIsSaidWhereNothingWasLeft) {
  const auto domain = started(taking_over());
  ASSERT_TRUE(domain);
  EXPECT_THAT(domain->takeover(), IsEmpty());
}

TEST_F(Takeover, ADaemonThatStillAnswersIsUsedOn) {
  write("answers/get_server_list", "5000000\n");  // a server that has two clients
  const Stranger daemon = left_daemon();
  DomainOptions with = taking_over();
  with.command_timeout = Milliseconds(20'000);
  const auto domain = started(with);
  ASSERT_TRUE(domain);
  EXPECT_EQ(domain->daemon_pid(), daemon.pid);
  EXPECT_THAT(domain->takeover(),
              HasSubstr(std::to_string(daemon.pid) + " was left running and is used on, with 2 clients"));
  EXPECT_TRUE(domain->running());
  EXPECT_TRUE(domain->quit(Milliseconds(20'000)));
  EXPECT_TRUE(end_of(daemon).clean());
}

TEST_F(Takeover, WhatADeadDaemonLeftIsRemoved) {
  ASSERT_TRUE(os::make_directories(file("pipe")));
  write("pipe/nvidia-cuda-mps-control.pid", "999999999\n");
  write("pipe/log", "");
  const auto domain = started(taking_over());
  ASSERT_TRUE(domain);
  EXPECT_THAT(domain->takeover(), HasSubstr("is removed, since its daemon was gone"));
  EXPECT_FALSE(std::ifstream(file("pipe/log")));
}

TEST_F(Takeover, ADaemonThatDoesNotAnswerIsEnded) {
  const Stranger daemon = left_daemon("silent");
  const auto domain = started(taking_over());
  ASSERT_TRUE(domain);
  EXPECT_THAT(domain->daemon_pid(), Ne(daemon.pid));
  EXPECT_THAT(domain->takeover(), HasSubstr("did not answer (1 processes ended)"));
  EXPECT_EQ(end_of(daemon).signal, SIGKILL);
}

TEST_F(Takeover, ADaemonOfAnotherGpuIsEnded) {
  const Stranger daemon = left_daemon("", "GPU-1");
  DomainOptions with = taking_over();
  with.gpu = "GPU-2";
  const auto domain = started(with);
  ASSERT_TRUE(domain);
  EXPECT_THAT(domain->takeover(), HasSubstr("had another GPU"));
  EXPECT_EQ(end_of(daemon).signal, SIGKILL);
  EXPECT_EQ(content("gpu"), "GPU-2\n");
}

TEST_F(Takeover, AClientOfTheSameDirectoriesIsNoLeftover) {
  const Stranger client = start({"sleep", "1000"}, mps_environment());
  ASSERT_TRUE(os::make_directories(file("pipe")));
  // The pid file means it by now, and it is left alone all the same.
  write("pipe/nvidia-cuda-mps-control.pid", std::to_string(client.pid) + "\n");
  const auto domain = started(taking_over());
  ASSERT_TRUE(domain);
  EXPECT_THAT(domain->daemon_pid(), Ne(client.pid));
  EXPECT_FALSE(kernel_.try_wait(client.pid).value());
  ASSERT_TRUE(kernel_.send_signal(client.pidfd, SIGTERM));
  EXPECT_EQ(end_of(client).signal, SIGTERM);
}

TEST_F(Takeover, WhatTheFormerDaemonWroteIsKept) {
  ASSERT_TRUE(os::make_directories(file("log")));
  write("log/server.log", "former\n");
  const auto domain = started(taking_over());
  ASSERT_TRUE(domain);
  EXPECT_EQ(content("log/server.log.1"), "former\n");
  EXPECT_THAT(content("log/server.log"), IsEmpty());
}

}  // namespace
}  // namespace firebreak::mps
