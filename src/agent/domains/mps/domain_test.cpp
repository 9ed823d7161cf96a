// SPDX-License-Identifier: Apache-2.0
#include "agent/domains/mps/domain.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tests/doubles/mps/domain_test_support.h"

namespace firebreak::mps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class DomainTest : public FakeDaemonTest {
 protected:
  std::unique_ptr<Domain> started(DomainOptions with) {
    auto domain = Domain::start(kernel_, std::move(with));
    EXPECT_TRUE(domain) << to_string(domain.error());
    return domain ? std::move(*domain) : nullptr;
  }
  /// Starts a domain whose daemon names `server` as its MPS server.
  std::unique_ptr<Domain> started_with(const Stranger& server) {
    DomainOptions with = options();
    with.environment.emplace_back("FAKE_MPS_SERVERS", std::to_string(server.pid));
    auto domain = started(std::move(with));
    if (domain == nullptr) return nullptr;
    EXPECT_THAT(domain->server_pids().value(), ElementsAre(server.pid));
    return domain;
  }
  Stranger start_server() { return start({options().control_program, "-f"}, {{"FAKE_MPS_MODE", "silent"}}); }
  std::size_t open_descriptors() { return kernel_.list_directory("/proc/self/fd").value().size(); }
};

TEST_F(DomainTest, StartsAnswersAndEnds) {
  const auto domain = started(options());
  ASSERT_TRUE(domain);
  const pid_t daemon = domain->daemon_pid();
  EXPECT_TRUE(domain->running());
  EXPECT_THAT(domain->server_pids().value(), IsEmpty());
  EXPECT_TRUE(domain->quit(Milliseconds(20'000)));
  EXPECT_FALSE(domain->running());
  EXPECT_FALSE(exists(daemon));
  EXPECT_TRUE(domain->quit(Milliseconds(20'000)));
}

TEST_F(DomainTest, UsersOfAGroupComputeAtTheSameTime) {
  DomainOptions for_users = options();
  for_users.group = ::getgid();
  ASSERT_TRUE(started(for_users));
  EXPECT_EQ(kernel_.read_file(directory_.path() + "/option").value_or(""), "-multiuser-server\n");
}

TEST_F(DomainTest, ForOneUserAloneMpsIsStartedAsEver) {
  ASSERT_TRUE(started(options()));
  EXPECT_EQ(kernel_.read_file(directory_.path() + "/option").value_or(""), "\n");
}

TEST_F(DomainTest, AnOlderMpsIsStartedWithoutWhatItDoesNotKnow) {
  const std::string older = directory_.path() + "/older-mps-control";
  std::ofstream(older) << "#!/bin/sh\nexec " << options().control_program << " \"$@\"\n";
  ASSERT_EQ(::chmod(older.c_str(), 0755), 0);
  DomainOptions for_users = options();
  for_users.group = ::getgid();
  for_users.control_program = older;
  ASSERT_TRUE(started(for_users));
  EXPECT_EQ(kernel_.read_file(directory_.path() + "/option").value_or(""), "\n");
}

TEST_F(DomainTest, TellsClientsWhereItIs) {
  const auto domain = started(options());
  ASSERT_TRUE(domain);
  const auto environment = domain->client_environment();
  EXPECT_THAT(
      environment,
      ElementsAre(std::pair<std::string, std::string>("CUDA_MPS_PIPE_DIRECTORY", directory_.path() + "/pipe"),
                  std::pair<std::string, std::string>("CUDA_MPS_LOG_DIRECTORY", directory_.path() + "/log")));
}

TEST_F(DomainTest, ListsClientsAndTerminatesOne) {
  const auto domain = started(options());
  ASSERT_TRUE(domain);
  EXPECT_THAT(domain->clients(5000000).value(), ElementsAre(601, 602));
  EXPECT_EQ(domain->clients(5000001).error().code, ErrorCode::NotFound);
  EXPECT_TRUE(domain->terminate_client(5000000, 601, Milliseconds(20'000)));
  EXPECT_EQ(domain->terminate_client(5000000, 777, Milliseconds(20'000)).error().code, ErrorCode::NotFound);
}

TEST_F(DomainTest, TheDestructorEndsTheDaemon) {
  auto domain = started(options());
  ASSERT_TRUE(domain);
  const pid_t daemon = domain->daemon_pid();
  domain.reset();
  EXPECT_FALSE(exists(daemon));
}

TEST_F(DomainTest, KillsADaemonThatIgnoresQuit) {
  const auto domain = started(options("ignores-quit"));
  ASSERT_TRUE(domain);
  const pid_t daemon = domain->daemon_pid();
  EXPECT_TRUE(domain->quit(Milliseconds(100)));
  EXPECT_FALSE(exists(daemon));
}

TEST_F(DomainTest, KillsAServerThatOutlivesItsDaemon) {
  const Stranger server = start_server();
  const auto domain = started_with(server);
  ASSERT_TRUE(domain);
  EXPECT_TRUE(domain->quit(Milliseconds(200)));
  EXPECT_EQ(end_of(server).signal, 9);
}

TEST_F(DomainTest, KeepsNothingOfAServerThatHasEnded) {
  const Stranger server = start_server();
  const auto domain = started_with(server);
  ASSERT_TRUE(domain);
  const std::size_t while_it_lives = open_descriptors();
  ASSERT_TRUE(kernel_.send_signal(server.pidfd, SIGKILL));
  EXPECT_EQ(end_of(server).signal, SIGKILL);
  ASSERT_TRUE(domain->server_pids());
  EXPECT_EQ(open_descriptors(), while_it_lives - 1);
}

TEST_F(DomainTest, EndsAServerWithoutClientsByAsking) {
  const Stranger server = start_server();
  DomainOptions with = options();
  with.server_end_timeout = std::chrono::hours(1);
  const auto domain = started(with);
  ASSERT_TRUE(domain);
  write("answers/get_server_list", std::to_string(server.pid) + "\n");
  EXPECT_TRUE(domain->end_server(server.pid));
  EXPECT_EQ(end_of(server).signal, SIGTERM) << "the fake's way";
  EXPECT_THAT(domain->server_pids().value(), IsEmpty());
}

TEST_F(DomainTest, KillsAServerWithoutClientsThatDoesNotEnd) {
  const Stranger server = start_server();
  DomainOptions with = options("ignores-shutdown");
  with.server_end_timeout = Milliseconds(1);
  const auto domain = started(with);
  ASSERT_TRUE(domain);
  write("answers/get_server_list", std::to_string(server.pid) + "\n");
  EXPECT_TRUE(domain->end_server(server.pid));
  EXPECT_EQ(end_of(server).signal, SIGKILL);
}

TEST_F(DomainTest, KillsNoServerThatHasAClientOrDoesNotSay) {
  const Stranger server = start_server();
  DomainOptions with = options("ignores-shutdown");
  with.server_end_timeout = Milliseconds(1);
  const auto domain = started(with);
  ASSERT_TRUE(domain);
  const std::string list = "answers/get_client_list_" + std::to_string(server.pid);
  write(list, std::to_string(getpid()) + "\n");
  write("answers/get_server_list", std::to_string(server.pid) + "\n");
  const Status ended = domain->end_server(server.pid);
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::Unavailable);
  write(list, "Error: it hangs\n");
  EXPECT_FALSE(domain->end_server(server.pid));
  EXPECT_FALSE(kernel_.try_wait(server.pid).value()) << "it lives";
  ASSERT_TRUE(kernel_.send_signal(server.pidfd, SIGKILL));
  end_of(server);
}

TEST_F(DomainTest, EndsNoProcessThatMpsDoesNotName) {
  const Stranger other = start_server();
  DomainOptions with = options();
  with.server_end_timeout = Milliseconds(1);
  const auto domain = started(with);
  ASSERT_TRUE(domain);
  EXPECT_TRUE(domain->end_server(other.pid));
  EXPECT_FALSE(kernel_.try_wait(other.pid).value()) << "it lives";
  EXPECT_THAT(content("commands"), testing::Not(HasSubstr("shutdown_server")));
  ASSERT_TRUE(kernel_.send_signal(other.pidfd, SIGKILL));
  end_of(other);
}

TEST_F(DomainTest, ATerminateThatHangsIsBounded) {
  DomainOptions with = options("hangs-on-terminate");
  with.quit_timeout = Milliseconds(200);
  const auto domain = started(with);
  ASSERT_TRUE(domain);
  const Status ended = domain->terminate_client(5000000, 601, Milliseconds(100));
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::Timeout);
}

TEST_F(DomainTest, ADaemonThatDiesIsReportedWithItsLastWords) {
  const auto domain = Domain::start(kernel_, options("dies"));
  ASSERT_FALSE(domain);
  EXPECT_EQ(domain.error().code, ErrorCode::Unavailable);
  EXPECT_THAT(domain.error().message, HasSubstr("the GPU is not there"));
}

TEST_F(DomainTest, ADaemonThatNeverAnswersIsATimeoutAndIsEnded) {
  DomainOptions with = options("silent");
  with.start_timeout = Milliseconds(200);
  with.quit_timeout = Milliseconds(100);
  const auto domain = Domain::start(kernel_, with);
  ASSERT_FALSE(domain);
  EXPECT_EQ(domain.error().code, ErrorCode::Timeout);
}

TEST_F(DomainTest, NoProgramIsOneLineWithWhatToDo) {
  DomainOptions with = options();
  with.control_program = "no-such-mps-control";
  const auto domain = Domain::start(kernel_, with);
  ASSERT_FALSE(domain);
  EXPECT_EQ(domain.error().code, ErrorCode::NotFound);
  EXPECT_THAT(to_string(domain.error()), HasSubstr("FIREBREAK_GPU=soft"));
  EXPECT_THAT(to_string(domain.error()), testing::Not(HasSubstr("\n")));
}

TEST_F(DomainTest, APathThatIsTooLongIsRefusedBeforeAnythingIsStarted) {
  DomainOptions with = options();
  with.directory += "/" + std::string(100, 'x');
  const auto domain = Domain::start(kernel_, with);
  ASSERT_FALSE(domain);
  EXPECT_EQ(domain.error().code, ErrorCode::InvalidArgument);
  EXPECT_THAT(to_string(domain.error()), HasSubstr("shorter"));
}

TEST_F(DomainTest, CommandsAfterTheEndSaySo) {
  const auto domain = started(options());
  ASSERT_TRUE(domain);
  ASSERT_TRUE(domain->quit(Milliseconds(20'000)));
  EXPECT_EQ(domain->server_pids().error().code, ErrorCode::Unavailable);
}

}  // namespace
}  // namespace firebreak::mps
