// SPDX-License-Identifier: Apache-2.0
/// A downgrade: an agent is started with what a newer one kept. The test is the service manager.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "agent/service/service_manager.h"
#include "agent/service/supervisor.h"
#include "agent/tenants/kept_state.h"
#include "tests/demo/firebreak_program.h"

namespace firebreak::tests {
namespace {

using testing::HasSubstr;

constexpr Milliseconds longest_wait{120'000};

class NewerState : public testing::Test {
 protected:
  NewerState() : notify_(std::move(os::bind_datagrams(notify_path_).value())) {}

  /// With that document, as sd_listen_fds(3) passes it on.
  void start_agent(const agent::KeptDocument& document) {
    os::SpawnRequest request;
    request.command = {"/bin/sh",
                       "-c",
                       R"(LISTEN_PID=$$ exec "$@")",
                       "sh",
                       std::string(FIREBREAK_PROGRAMS) + "/firebreakd",
                       "--directory",
                       sandbox_.file("d")};
    request.environment = sandbox_.environment();
    request.environment.insert(
        request.environment.end(),
        {{"NOTIFY_SOCKET", notify_path_}, {"LISTEN_FDS", "1"}, {"LISTEN_FDNAMES", agent::document_name()}});
    request.inherited = {{document.descriptor(), 3}};
    pid_ = kernel_.spawn(request).value();
    pidfd_ = std::move(kernel_.pidfd_open(pid_).value());
  }
  /// All that it tells its manager until it is up.
  std::string told_until_ready() {
    std::string told;
    while (agent::value_in(told, "READY") != "1") {
      const auto received = notify_.receive(longest_wait);
      if (!received) {
        ADD_FAILURE() << "it is not up: " << told;
        return told;
      }
      told.append(reinterpret_cast<const char*>(received->bytes.data()), received->bytes.size());
      told += '\n';
    }
    return told;
  }
  os::ExitStatus end(int signal) {
    EXPECT_TRUE(kernel_.send_signal(pidfd_, signal));
    return os::wait_for_child(kernel_, pid_, pidfd_, longest_wait).value().value_or(os::ExitStatus{});
  }
  std::string status() {
    return sandbox_.run("firebreak", {"status", "--socket", sandbox_.file("d/agent.sock")}).output;
  }

  os::RealKernel kernel_;
  Sandbox sandbox_;
  std::string notify_path_ = sandbox_.file("notify");
  os::Socket notify_;
  pid_t pid_ = 0;
  os::Fd pidfd_;
};

TEST_F(NewerState, IsLeftAloneAndToldAndTheAgentWaits) {
  agent::KeptDocument document = std::move(agent::KeptDocument::create().value());
  ASSERT_TRUE(document.write(R"({"version":3,"servers":[],"placements":[]})"));
  start_agent(document);
  const std::string told = told_until_ready();
  EXPECT_THAT(told, HasSubstr("STATUS=older than what is kept: what is kept of the tenants was written by a "
                              "newer agent (version 3, this one knows 2 to 2)"));
  EXPECT_THAT(told, HasSubstr("install that agent again and restart firebreakd"));
  EXPECT_THAT(told, testing::Not(HasSubstr("FDSTOREREMOVE")));
  EXPECT_THAT(status(), HasSubstr("by a newer agent (version 3"));
  EXPECT_FALSE(std::filesystem::exists(sandbox_.file("d/a"))) << "it has begun no domain";
  EXPECT_EQ(end(SIGTERM).exit_code, agent::handed_over_status);
  EXPECT_EQ(document.read(), R"({"version":3,"servers":[],"placements":[]})");
  EXPECT_THAT(sandbox_.left_behind_at_last(), testing::IsEmpty());
}

TEST_F(NewerState, IsNoneWhereItIsOfThisVersion) {
  agent::KeptDocument document = std::move(agent::KeptDocument::create().value());
  ASSERT_TRUE(document.write(R"({"version":2,"servers":[],"placements":[]})"));
  start_agent(document);
  EXPECT_THAT(told_until_ready(), testing::Not(HasSubstr("newer")));
  EXPECT_THAT(status(), HasSubstr("serving"));
  EXPECT_TRUE(end(SIGINT).clean());
  EXPECT_THAT(sandbox_.left_behind_at_last(), testing::IsEmpty());
}

}  // namespace
}  // namespace firebreak::tests
