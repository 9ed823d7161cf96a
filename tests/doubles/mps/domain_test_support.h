// SPDX-License-Identifier: Apache-2.0
/// What the tests of domains share: a domain whose daemon is the program beside the test, steered by files.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "agent/domains/mps/domain.h"
#include "ground/os/file.h"
#include "ground/os/program.h"
#include "ground/os/real_kernel.h"
#include "ground/os/self.h"

namespace firebreak::mps {

class FakeDaemonTest : public testing::Test {
 protected:
  FakeDaemonTest() : directory_(os::TemporaryDirectory::create().value()) {
    EXPECT_TRUE(os::make_directories(file("answers")));
  }

  DomainOptions options(const std::string& mode = "") const {
    DomainOptions options;
    options.name = "a";
    options.directory = directory_.path();
    const std::string here = os::executable_path().value();
    options.control_program = here.substr(0, here.rfind('/')) + "/mps_fake_control";
    options.environment = {{"FAKE_MPS_MODE", mode}};
    options.start_timeout = Milliseconds(20'000);
    options.command_timeout = Milliseconds(20'000);
    return options;
  }
  std::string file(const std::string& name) const { return directory_.path() + "/" + name; }
  std::string content(const std::string& name) const {
    std::ifstream stream(file(name));
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  }
  /// At once or not at all, for who reads it meanwhile.
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(file("unfinished")) << text;
    ASSERT_EQ(std::rename(file("unfinished").c_str(), file(name).c_str()), 0);
  }
  bool exists(pid_t pid) { return kernel_.pidfd_open(pid).has_value(); }

  /// A process of the fake control program that nobody but the test knows of.
  struct Stranger {
    pid_t pid = 0;
    os::Fd pidfd;
  };
  Stranger start(std::vector<std::string> command, Environment environment) {
    os::SpawnRequest request;
    request.command = std::move(command);
    request.environment = std::move(environment);
    const pid_t pid = kernel_.spawn(request).value();
    return {pid, kernel_.pidfd_open(pid).value()};
  }
  Environment mps_environment() const { return {{"CUDA_MPS_PIPE_DIRECTORY", file("pipe")}}; }
  /// A daemon that another process had started there.
  Stranger left_daemon(const std::string& mode = "", const std::string& gpu = "") {
    EXPECT_TRUE(os::make_directories(file("pipe")));
    Environment environment = mps_environment();
    environment.emplace_back("FAKE_MPS_MODE", mode);
    if (!gpu.empty()) environment.emplace_back("CUDA_VISIBLE_DEVICES", gpu);
    Stranger daemon = start({options().control_program, "-f"}, environment);
    while (content("gpu").find('\n') == std::string::npos) {
    }
    return daemon;
  }
  os::ExitStatus end_of(const Stranger& stranger) {
    const auto status =
        os::wait_for_child(kernel_, stranger.pid, stranger.pidfd, Milliseconds(60'000)).value();
    EXPECT_TRUE(status.has_value());
    return status.value_or(os::ExitStatus{});
  }

  os::RealKernel kernel_;
  os::TemporaryDirectory directory_;
};

}  // namespace firebreak::mps
