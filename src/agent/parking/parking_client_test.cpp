// SPDX-License-Identifier: Apache-2.0
/// The agent's own client of a domain, as a service of its own and as a child. Its program is a script here.
#include "agent/parking/parking_client.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "shared/dump_mode/mode.h"
#include "tests/doubles/agent/agent_test_support.h"

namespace firebreak::agent {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class ParkingClientTest : public testing::Test {
 protected:
  ParkingClientTest() {
    options_.tenant_environment = {{"LD_LIBRARY_PATH", "/soft"}};
    options_.parking_client = directory_.path() + "/client";
    std::ofstream(options_.parking_client) << "#!/bin/sh\nread begin && echo ready && exec cat\n";
    std::filesystem::permissions(options_.parking_client, std::filesystem::perms::owner_all);
  }

  Result<std::unique_ptr<ParkingClient>> start() {
    ParkingClient::Callbacks callbacks;
    callbacks.on_ready = [this] { is_ready_ = true; };
    callbacks.on_refused = [this](const std::string& why) { refused_ = why; };
    callbacks.on_exit = [this] { has_ended_ = true; };
    return ParkingClient::start({options_, *loop_, kernel_, starter_}, std::move(callbacks),
                                {"a", "firebreak-park-a-1", directory_.path() + "/pipe"},
                                std::make_shared<park::DumpBudget>(std::size_t{1} << 20),
                                {{"CUDA_MPS_PIPE_DIRECTORY", "/mps/a"}});
  }
  /// Starts it as systemd does: elsewhere, with those descriptors.
  Result<pid_t> start_elsewhere(const ApartService& service) {
    os::SpawnRequest request;
    request.command = service.command;
    request.environment = service.environment;
    request.standard_input = service.input;
    request.standard_output = request.standard_error = service.output;
    request.die_with_parent = false;
    auto pid = kernel_.spawn(request);
    if (pid) pid_ = *pid;
    return pid;
  }
  /// Starts services, from now on, once `go_` says so.
  void start_once_told() {
    manager_.starts = [this](const ApartService& service) {
      go_.get_future().wait();
      return start_elsewhere(service);
    };
  }
  void until(const bool& is_so) {
    while (!is_so) loop_->run_once(Milliseconds(1000));
  }
  /// Waits for it.
  os::ExitStatus end_of(pid_t pid) {
    for (;;) {
      auto ended = kernel_.try_wait(pid);
      if (!ended) return {};  // somebody else has waited
      if (*ended) return **ended;
    }
  }

  os::TemporaryDirectory directory_ = std::move(os::TemporaryDirectory::create().value());
  std::unique_ptr<os::EventLoop> loop_ = std::move(os::EventLoop::create().value());
  os::RealKernel kernel_;
  AgentOptions options_;
  FakeServiceManager manager_;
  std::promise<void> go_;
  bool is_ready_ = false, has_ended_ = false;
  std::string refused_;
  pid_t pid_ = 0;  ///< process that was started elsewhere
  ApartStarter starter_{*loop_, manager_};
};

TEST_F(ParkingClientTest, IsAServiceOfItsOwnWhereSomebodyStartsThose) {
  ApartService asked;
  manager_.starts = [&](const ApartService& service) {
    asked = service;
    return start_elsewhere(service);
  };
  const auto client = start();
  ASSERT_TRUE(client);
  EXPECT_EQ((*client)->pid(), 0) << "the manager is not waited for";
  until(is_ready_);
  EXPECT_EQ((*client)->pid(), pid_);
  EXPECT_EQ(asked.name, "firebreak-park-a-1");
  EXPECT_THAT(asked.command, ElementsAre(options_.parking_client));
  EXPECT_THAT(asked.environment, Contains(Pair("CUDA_MPS_PIPE_DIRECTORY", "/mps/a")));
  EXPECT_THAT(asked.environment, Contains(Pair("LD_LIBRARY_PATH", "/soft")));
  EXPECT_THAT(asked.environment, Contains(Pair("CUDA_COREDUMP_FILE", directory_.path() + "/pipe")));
  EXPECT_EQ(asked.output_path, "") << "we read it";
  (*client)->end();
  until(has_ended_);
}

TEST_F(ParkingClientTest, IsAChildWhereNobodyDoes) {
  const auto client = start();
  ASSERT_TRUE(client);
  EXPECT_THAT(os::children_of(kernel_, ::getpid()), Contains((*client)->pid()));
  until(is_ready_);
}

TEST_F(ParkingClientTest, IsAChildWhereItCouldNotBeStartedElsewhere) {
  manager_.starts = [](const ApartService&) -> Result<pid_t> {
    return fail(ErrorCode::Timeout, "the manager does not answer");
  };
  const auto client = start();
  ASSERT_TRUE(client);
  until(is_ready_);
  EXPECT_THAT(os::children_of(kernel_, ::getpid()), Contains((*client)->pid()));
  EXPECT_EQ(refused_, "");
}

TEST_F(ParkingClientTest, WhoCannotBeStartedAtAllIsToldOf) {
  manager_.starts = [](const ApartService&) -> Result<pid_t> {
    return fail(ErrorCode::Timeout, "the manager does not answer");
  };
  options_.parking_client += "-that-is-not-there";
  const auto client = start();
  ASSERT_TRUE(client);
  until(has_ended_);
  EXPECT_THAT(refused_, HasSubstr("that-is-not-there"));
}

TEST_F(ParkingClientTest, OneThatIsToldToEndWhileItIsStartedEndsOnceItIsThere) {
  start_once_told();
  const auto client = start();
  ASSERT_TRUE(client);
  (*client)->end();
  go_.set_value();
  until(has_ended_);
  EXPECT_FALSE(is_ready_);
  EXPECT_EQ(refused_, "");
  EXPECT_EQ((*client)->pid(), pid_);
}

TEST_F(ParkingClientTest, OneThatIsToldToEndWhileItsStartFailsIsNoChildEither) {
  manager_.starts = [this](const ApartService&) -> Result<pid_t> {
    go_.get_future().wait();
    return fail(ErrorCode::Timeout, "the manager does not answer");
  };
  const auto client = start();
  ASSERT_TRUE(client);
  (*client)->end();
  go_.set_value();
  until(has_ended_);
  EXPECT_EQ((*client)->pid(), 0);
  EXPECT_EQ(refused_, "");
}

TEST_F(ParkingClientTest, OneThatComesToNobodyEndsByItself) {
  start_once_told();
  auto client = start();
  ASSERT_TRUE(client);
  client->reset();
  bool is_over = false;
  const auto timer = loop_->after(Milliseconds(0), [&] { is_over = true; });
  until(is_over);  // the loop goes on meanwhile
  go_.set_value();
  while (pid_ == 0 || starter_.is_starting()) loop_->run_once(Milliseconds(1000));
  EXPECT_EQ(end_of(pid_).exit_code, 1) << "its input is at its end";
  EXPECT_FALSE(has_ended_);
}

TEST_F(ParkingClientTest, WhoGoesWhileOneIsStartedWaitsForIt) {
  auto starter = std::make_unique<ApartStarter>(*loop_, manager_);
  std::promise<void> has_begun;
  manager_.starts = [&](const ApartService&) -> Result<pid_t> {
    has_begun.set_value();
    go_.get_future().wait();
    return pid_ = 1;
  };
  bool is_told = false;
  starter->start({}, [&](const Result<pid_t>&) { is_told = true; });
  has_begun.get_future().wait();
  std::thread later([this] { go_.set_value(); });
  starter.reset();
  later.join();
  EXPECT_EQ(pid_, 1);
  while (loop_->run_once(Milliseconds(0))) {
  }
  EXPECT_FALSE(is_told);
}

}  // namespace
}  // namespace firebreak::agent
