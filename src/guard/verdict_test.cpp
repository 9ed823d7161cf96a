// SPDX-License-Identifier: Apache-2.0
#include "guard/verdict.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "guard/trial.h"
#include "os/fake_kernel.h"
#include "os/runtime_file.h"
#include "os/self.h"
#include "os/temporary_directory.h"

namespace firebreak::guard {
namespace {

using Word = Verdict::Word;

class VerdictTest : public testing::Test {
 protected:
  VerdictTest() { describe_machine("boot-1", "driver 580.159.04"); }
  void describe_machine(const std::string& boot, const std::string& driver) {
    kernel_.set_file("/proc/sys/kernel/random/boot_id", boot + "\n");
    kernel_.set_file("/proc/driver/nvidia/version", driver + "\nGCC version: 12\n");
  }

  os::TemporaryDirectory directory_ = std::move(os::TemporaryDirectory::create().value());
  os::EnvironmentScope scope_{os::EnvironmentScope::Variables{{"XDG_RUNTIME_DIR", directory_.path()}}};
  os::FakeKernel kernel_;
};

TEST_F(VerdictTest, IsKnownUntilTheNextBootOrDriver) {
  EXPECT_EQ(known_verdict(kernel_).word, Word::Untested);
  const Verdict fails{Word::Fails, "the GPU may not"};
  ASSERT_TRUE(keep_verdict(kernel_, fails));
  EXPECT_EQ(known_verdict(kernel_), fails);
  describe_machine("boot-2", "driver 580.159.04");
  EXPECT_EQ(known_verdict(kernel_).word, Word::Untested);
  describe_machine("boot-1", "driver 590.1");
  EXPECT_EQ(known_verdict(kernel_).word, Word::Untested);
  ASSERT_TRUE(keep_verdict(kernel_, {Word::Works, ""}));
  EXPECT_EQ(known_verdict(kernel_).word, Word::Works);
  describe_machine("boot-1", "driver 580.159.04");
  EXPECT_EQ(known_verdict(kernel_), fails);
}

TEST_F(VerdictTest, WhatWasNotFoundOutIsNotKept) {
  ASSERT_TRUE(keep_verdict(kernel_, {Word::Works, ""}));
  ASSERT_TRUE(keep_verdict(kernel_, {Word::Untested, "no GPU"}));
  EXPECT_EQ(known_verdict(kernel_).word, Word::Works);
}

TEST_F(VerdictTest, OfAFolderThatOthersMayWriteIsNotBelieved) {
  ASSERT_TRUE(keep_verdict(kernel_, {Word::Fails, "forged"}));
  ::chmod(os::runtime_folder().c_str(), 0777);
  EXPECT_EQ(known_verdict(kernel_).word, Word::Untested);
}

TEST_F(VerdictTest, NonsenseIsNoVerdict) {
  ASSERT_TRUE(keep_verdict(kernel_, {Word::Works, ""}));
  const auto file = std::filesystem::directory_iterator(os::runtime_folder())->path().filename().string();
  for (const char* content : {"", "boot-1\n", "boot-1\ndriver 580.159.04\nperhaps\n"}) {
    ASSERT_TRUE(os::replace_runtime_file(os::runtime_folder(), file, content));
    EXPECT_EQ(known_verdict(kernel_).word, Word::Untested) << content;
  }
}

TEST_F(VerdictTest, WithoutADriverNothingIsKnown) {
  kernel_.remove("/proc/driver/nvidia/version");
  EXPECT_EQ(known_verdict(kernel_).word, Word::Untested);
  EXPECT_FALSE(keep_verdict(kernel_, {Word::Works, ""}));
}

TEST_F(VerdictTest, TheTrialIsInNoMpsDomainAndHasNoGuard) {
  os::SpawnRequest asked;
  kernel_.on_spawn([&](const os::SpawnRequest& request) -> Result<pid_t> {
    asked = request;
    return fail(ErrorCode::Internal, "enough");
  });
  EXPECT_EQ(known_or_tried_verdict(kernel_, os::SpawnRequest{}), (Verdict{Word::Untested, "enough"}));
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

TEST_F(VerdictTest, WhatIsKnownIsNotTriedAgain) {
  ASSERT_TRUE(keep_verdict(kernel_, {Word::Works, ""}));
  EXPECT_EQ(known_or_tried_verdict(kernel_, os::SpawnRequest{}).word, Word::Works);
  EXPECT_TRUE(kernel_.spawned().empty());
}

}  // namespace
}  // namespace firebreak::guard
