// SPDX-License-Identifier: Apache-2.0
// Who is a server and who a client, as the agent's own domains know it of the software GPU's MPS.
#include "agent/domains/mps_domains.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <optional>

#include "agent/faults/watch/isolation.h"
#include "ground/os/file.h"
#include "ground/os/processes.h"
#include "ground/os/real_kernel.h"
#include "stage/stage.h"
#include "tests/demo/firebreak_program.h"

namespace firebreak::tests {
namespace {

constexpr Milliseconds patience{120'000};

/// Beside a patched nvidia-uvm, whose file for the MPS servers is one of ours; or beside another one.
class KernelWithIsolation final : public os::RealKernel {
 public:
  Result<os::Fd> open(const std::string& path, int flags) override {
    if (path != watch::isolation_servers_path) return RealKernel::open(path, flags);
    return RealKernel::open(servers_, is_patched_.load() ? flags | O_CREAT | O_APPEND : flags);
  }
  void unpatch() { is_patched_.store(false); }
  /// One a line, in the order in which they were named.
  std::string named() { return read_file(servers_).value_or(""); }

 private:
  const os::TemporaryDirectory directory_ = os::TemporaryDirectory::create().value();
  const std::string servers_ = directory_.path() + "/servers";
  std::atomic<bool> is_patched_ = true;  ///< each domain opens the file on a thread of its own
};

class MpsDomainsTest : public testing::Test {
 protected:
  MpsDomainsTest() {
    agent::Domains::Callbacks callbacks;
    callbacks.on_clients_lost = [this](const std::string&) { ++clients_lost_; };
    callbacks.on_clients = [this](const std::string& domain, const mps::ClientList& list) {
      clients_[domain] = list.pids;
    };
    callbacks.on_server = [this](const std::string& domain, pid_t pid) { servers_[domain] = pid; };
    EXPECT_TRUE(domains_.start(std::move(callbacks)));
  }
  /// A placed client, as `firebreak run` starts one, which runs short kernels until it is told "end".
  stage::Actor& start_client(const std::string& domain) {
    return start_client_in(domains_.environment(domain));
  }
  stage::Actor& start_client_in(const agent::Environment& environment) {
    stage::Casting casting{
        "client", "", {program("firebreak-lab"), "victim", "--pace-ms", "5"}, sandbox_.environment()};
    for (const auto& variable : environment) casting.environment.push_back(variable);
    stage::Actor& client =
        *stage_->enter(casting, [this](const std::string& line) { said_ += line; }).value();
    wait("the client", [&] { return said_.find("ready") != std::string::npos; });
    return client;
  }
  void wait(const std::string& what, const std::function<bool()>& done) {
    const Status waited = stage_->wait(what, patience, done);
    ASSERT_TRUE(waited) << to_string(waited.error());
  }
  void wait_for_server(const std::string& domain) {
    domains_.refresh_servers();
    wait("its server", [&] { return servers_.contains(domain); });
  }
  static std::string program(const std::string& name) { return std::string(FIREBREAK_PROGRAMS) + "/" + name; }

  KernelWithIsolation kernel_;
  SystemClock clock_;
  Sandbox sandbox_;
  std::unique_ptr<stage::Stage> stage_ = std::move(stage::Stage::create(kernel_, clock_).value());
  std::map<std::string, pid_t> servers_;
  std::map<std::string, std::vector<pid_t>> clients_;
  int clients_lost_ = 0;
  std::string said_;
  agent::MpsDomains domains_{stage_->loop(),
                             kernel_,
                             {.directory = sandbox_.file("d"),
                              .control_program = program("../lib/softgpu/nvidia-cuda-mps-control"),
                              .environment = sandbox_.environment(),
                              .gpus = {},
                              .log = {},
                              .anchors = true}};
};

// It has the domain's directory in its environment, as its server does.
TEST_F(MpsDomainsTest, APlacedClientIsNoServer) {
  const stage::Actor& client = start_client("a");
  const pid_t pid = client.record().pid;
  EXPECT_EQ(domains_.domain_of_server(pid), std::nullopt);
  wait_for_server("a");
  EXPECT_EQ(domains_.domain_of_server(servers_["a"]), "a");
  EXPECT_EQ(domains_.domain_of_server(pid), std::nullopt);
  EXPECT_EQ(os::variable_in(os::environment_of(kernel_, pid), "CUDA_MPS_PIPE_DIRECTORY"),
            sandbox_.file("d/a/pipe"));
}

TEST_F(MpsDomainsTest, EveryClientIsNamedWhoeverHasStartedIt) {
  const pid_t pid = start_client("a").record().pid;
  domains_.look_for_clients("a");
  wait("its name", [&] { return clients_["a"] == std::vector<pid_t>{pid}; });
  EXPECT_TRUE(clients_["b"].empty());
}

TEST_F(MpsDomainsTest, TheDaemonAndItsCommandsAreNoServers) {
  for (const mps::DomainReport& report : domains_.reports()) {
    EXPECT_EQ(domains_.domain_of_server(report.daemon_pid), std::nullopt);
  }
}

TEST_F(MpsDomainsTest, AServerIsForgottenOnceItHasASuccessor) {
  start_client("a");
  wait_for_server("a");
  const pid_t first = servers_["a"];
  ASSERT_TRUE(kernel_.send_signal(kernel_.pidfd_open(first).value(), SIGKILL));
  wait("the next server", [&] { return servers_["a"] != first; });
  EXPECT_EQ(domains_.domain_of_server(first), std::nullopt);
  EXPECT_EQ(domains_.domain_of_server(servers_["a"]), "a");
  EXPECT_EQ(clients_lost_, 1);
}

// Where the driver kills whoever faults, a server that it does not know would be killed for a fault of its
// own.
TEST_F(MpsDomainsTest, ADriverThatContainsFaultsIsToldOfEachServer) {
  start_client("a");
  wait_for_server("a");
  const pid_t first = servers_["a"];
  EXPECT_EQ(kernel_.named(), std::to_string(first) + "\n");
  ASSERT_TRUE(kernel_.send_signal(kernel_.pidfd_open(first).value(), SIGKILL));
  wait("the next server", [&] { return servers_["a"] != first; });
  EXPECT_EQ(kernel_.named(), std::to_string(first) + "\n" + std::to_string(servers_["a"]) + "\n");
}

TEST_F(MpsDomainsTest, SoItIsOfTheServerOfSpares) {
  start_client_in(domains_.anchor_environment("a"));
  wait("its server", [&] { return !kernel_.named().empty(); });
  EXPECT_EQ(std::ranges::count(kernel_.named(), '\n'), 1);
  EXPECT_TRUE(servers_.empty());
}

TEST_F(MpsDomainsTest, AnotherDriverIsToldNothing) {
  kernel_.unpatch();
  start_client("a");
  wait_for_server("a");
  EXPECT_TRUE(kernel_.named().empty());
}

}  // namespace
}  // namespace firebreak::tests
