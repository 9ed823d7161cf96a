// SPDX-License-Identifier: Apache-2.0
#include "shared/guard_page/probe_result.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "ground/os/file.h"
#include "ground/os/self.h"
#include "shared/guard_page/probe_program.h"
#include "tests/doubles/os/fake_kernel.h"

namespace firebreak::guard {
namespace {

using Answer = ProbeResult::Answer;

class ProbeResultTest : public testing::Test {
 protected:
  ProbeResultTest() { describe_machine("boot-1", "driver 580.159.04"); }
  void describe_machine(const std::string& boot, const std::string& driver) {
    kernel_.set_file("/proc/sys/kernel/random/boot_id", boot + "\n");
    kernel_.set_file("/proc/driver/nvidia/version", driver + "\nGCC version: 12\n");
  }

  os::TemporaryDirectory directory_ = std::move(os::TemporaryDirectory::create().value());
  os::EnvironmentScope scope_{os::EnvironmentScope::Variables{{"XDG_RUNTIME_DIR", directory_.path()}}};
  os::FakeKernel kernel_;
};

TEST_F(ProbeResultTest, IsKnownUntilTheNextBootOrDriver) {
  EXPECT_EQ(known_probe_result(kernel_, Probed::GuardRanges).answer, Answer::Untested);
  const ProbeResult fails{Answer::Fails, "the GPU may not"};
  ASSERT_TRUE(keep_probe_result(kernel_, Probed::GuardRanges, fails));
  EXPECT_EQ(known_probe_result(kernel_, Probed::GuardRanges), fails);
  describe_machine("boot-2", "driver 580.159.04");
  EXPECT_EQ(known_probe_result(kernel_, Probed::GuardRanges).answer, Answer::Untested);
  describe_machine("boot-1", "driver 590.1");
  EXPECT_EQ(known_probe_result(kernel_, Probed::GuardRanges).answer, Answer::Untested);
  ASSERT_TRUE(keep_probe_result(kernel_, Probed::GuardRanges, {Answer::Works, ""}));
  EXPECT_EQ(known_probe_result(kernel_, Probed::GuardRanges).answer, Answer::Works);
  describe_machine("boot-1", "driver 580.159.04");
  EXPECT_EQ(known_probe_result(kernel_, Probed::GuardRanges), fails);
}

TEST_F(ProbeResultTest, OfOneThingIsNoneOfAnother) {
  ASSERT_TRUE(keep_probe_result(kernel_, Probed::Spares, {Answer::Fails, "one instance alone"}));
  EXPECT_EQ(known_probe_result(kernel_, Probed::GuardRanges).answer, Answer::Untested);
  EXPECT_EQ(known_probe_result(kernel_, Probed::Spares).reason, "one instance alone");
}

TEST_F(ProbeResultTest, WhatWasNotFoundOutIsNotKept) {
  ASSERT_TRUE(keep_probe_result(kernel_, Probed::GuardRanges, {Answer::Works, ""}));
  ASSERT_TRUE(keep_probe_result(kernel_, Probed::GuardRanges, {Answer::Untested, "no GPU"}));
  EXPECT_EQ(known_probe_result(kernel_, Probed::GuardRanges).answer, Answer::Works);
}

TEST_F(ProbeResultTest, OfAFolderThatOthersMayWriteIsNotBelieved) {
  ASSERT_TRUE(keep_probe_result(kernel_, Probed::GuardRanges, {Answer::Fails, "forged"}));
  ::chmod(os::runtime_folder().c_str(), 0777);
  EXPECT_EQ(known_probe_result(kernel_, Probed::GuardRanges).answer, Answer::Untested);
}

TEST_F(ProbeResultTest, NonsenseIsNoResult) {
  ASSERT_TRUE(keep_probe_result(kernel_, Probed::GuardRanges, {Answer::Works, ""}));
  const auto file = std::filesystem::directory_iterator(os::runtime_folder())->path().filename().string();
  for (const char* content : {"", "boot-1\n", "boot-1\ndriver 580.159.04\nperhaps\n"}) {
    ASSERT_TRUE(os::replace_runtime_file(os::runtime_folder(), file, content));
    EXPECT_EQ(known_probe_result(kernel_, Probed::GuardRanges).answer, Answer::Untested) << content;
  }
}

TEST_F(ProbeResultTest, WithoutADriverNothingIsKnown) {
  kernel_.remove("/proc/driver/nvidia/version");
  EXPECT_EQ(known_probe_result(kernel_, Probed::GuardRanges).answer, Answer::Untested);
  EXPECT_FALSE(keep_probe_result(kernel_, Probed::GuardRanges, {Answer::Works, ""}));
}

TEST_F(ProbeResultTest, TheProbeIsInNoMpsDomainAndHasNoGuard) {
  os::SpawnRequest asked;
  kernel_.on_spawn([&](const os::SpawnRequest& request) -> Result<pid_t> {
    asked = request;
    return fail(ErrorCode::Internal, "enough");
  });
  EXPECT_EQ(known_or_new_probe_result(kernel_, Probed::GuardRanges, os::SpawnRequest{}),
            (ProbeResult{Answer::Untested, "enough"}));
  const auto value = [&](const std::string& wanted) {
    std::string last = "absent";
    for (const auto& [name, text] : asked.environment) {
      if (name == wanted) last = text;
    }
    return last;
  };
  EXPECT_EQ(value("LD_PRELOAD"), "");
  const std::string pipes = value("CUDA_MPS_PIPE_DIRECTORY");
  EXPECT_TRUE(pipes.starts_with('/')) << pipes;
  EXPECT_NE(pipes, "/tmp/nvidia-mps");
}

TEST_F(ProbeResultTest, WhatIsKnownIsNotTriedAgain) {
  ASSERT_TRUE(keep_probe_result(kernel_, Probed::GuardRanges, {Answer::Works, ""}));
  EXPECT_EQ(known_or_new_probe_result(kernel_, Probed::GuardRanges, os::SpawnRequest{}).answer,
            Answer::Works);
  EXPECT_TRUE(kernel_.spawned().empty());
}

}  // namespace
}  // namespace firebreak::guard
