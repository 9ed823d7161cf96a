// SPDX-License-Identifier: Apache-2.0
// A whole tenant, active and standby, each run as its main() runs it: the standby goes on where the active
// ended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/workloads/fake_firebreak.h"
#include "workloads/common/program.h"
#include "workloads/decode/decode_workload.h"
#include "workloads/denoise/denoise_workload.h"

namespace firebreak::workloads {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using workloads::testing::fake_firebreak;
using workloads::testing::FakeFirebreak;

constexpr std::uint64_t steps = 12;

Program program_of(const std::string& name) {
  if (name == "decode") {
    return {.name = "decode", .ptx = decode::ptx(), .create = decode::DecodeWorkload::create_from};
  }
  return {.name = "denoise", .ptx = denoise::ptx(), .create = denoise::DenoiseWorkload::create_from};
}

struct Outcome {
  int status = 0;
  std::string out;
  std::string err;
  std::string file;  ///< empty when there is none
};

class Takeover : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    workloads::testing::use_own_soft_gpu();
    setenv("FIREBREAK_CUDA_LIBRARY", FIREBREAK_SOFTGPU_LIBRARY, 1);
    setenv("FIREBREAK_SOCKET", "unused", 1);
    fake_firebreak() = FakeFirebreak{};
  }

  Outcome run(const std::vector<const char*>& more = {}) {
    const auto file =
        std::filesystem::path(::testing::TempDir()) / ("firebreak-takeover-" + std::string(GetParam()));
    std::filesystem::remove(file);
    const std::string file_name = file.string();
    const std::string step_count = std::to_string(steps);
    std::vector<const char*> arguments = {"program", "--steps", step_count.c_str(), "--output",
                                          file_name.c_str()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    Outcome outcome;
    outcome.status =
        run_program(program_of(GetParam()), static_cast<int>(arguments.size()), arguments.data());
    outcome.out = ::testing::internal::GetCapturedStdout();
    outcome.err = ::testing::internal::GetCapturedStderr();
    std::ostringstream content;
    content << std::ifstream(file, std::ios::binary).rdbuf();
    outcome.file = content.str();
    std::filesystem::remove(file);
    return outcome;
  }
};

TEST_P(Takeover, AnActiveCommitsEveryStepAndLeaves) {
  const Outcome active = run();
  EXPECT_EQ(active.status, 0) << active.err;
  EXPECT_THAT(fake_firebreak().calls, ElementsAre("join", "alloc", "wait_promotion", "commit", "leave"));
  EXPECT_EQ(fake_firebreak().next_step, steps + 1);
  EXPECT_THAT(fake_firebreak().wanted, ElementsAre(13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1));
  EXPECT_THAT(active.out, StartsWith(std::string(GetParam()) + ": 12 steps, output "));
  const Outcome alone = run({"--standalone"});
  EXPECT_EQ(active.file, alone.file);
  EXPECT_EQ(active.out, alone.out);
}

TEST_P(Takeover, TheStandbyGoesOnWithTheSameOutput) {
  const Outcome alone = run({"--standalone"});
  ASSERT_FALSE(alone.file.empty());
  for (const std::uint64_t ends_at : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{6}, steps}) {
    fake_firebreak() = FakeFirebreak{};
    fake_firebreak().ends_at_commit = ends_at;
    const Outcome active = run();
    EXPECT_EQ(active.status, static_cast<int>(Failure::Fenced));
    EXPECT_EQ(active.file, "");
    EXPECT_THAT(active.err, HasSubstr(": step " + std::to_string(ends_at) + ": fb_commit"));

    fake_firebreak().role = FB_ROLE_STANDBY;
    fake_firebreak().ends_at_commit = ~std::uint64_t{0};
    const Outcome standby = run();
    EXPECT_EQ(standby.status, 0) << standby.err;
    EXPECT_THAT(fake_firebreak().calls,
                ElementsAre("join", "alloc", "ready", "wait_promotion", "resumed", "commit", "leave"));
    EXPECT_EQ(standby.file, alone.file) << "taken over at step " << ends_at;
    EXPECT_EQ(standby.out, alone.out);
  }
}

TEST_P(Takeover, AStandbyThatNobodyNeedsEndsSilently) {
  fake_firebreak().role = FB_ROLE_STANDBY;
  fake_firebreak().finished = true;
  const Outcome standby = run();
  EXPECT_EQ(standby.status, 0);
  EXPECT_EQ(standby.out + standby.err + standby.file, "");
  EXPECT_THAT(fake_firebreak().calls, ElementsAre("join", "alloc", "ready", "wait_promotion", "leave"));
}

TEST_P(Takeover, AnErrorOfTheGpuIsOneLineAndStatusThree) {
  fake_firebreak().ends_at_commit = 3;
  fake_firebreak().end = FB_ERROR_CUDA;
  const Outcome active = run();
  EXPECT_EQ(active.status, 3);
  EXPECT_EQ(active.err,
            std::string(GetParam()) + ": step 3: fb_commit: FB_ERROR_CUDA: what the library says\n");
  EXPECT_EQ(active.file, "");
  EXPECT_THAT(fake_firebreak().calls, ElementsAre("join", "alloc", "wait_promotion", "commit"));
}

INSTANTIATE_TEST_SUITE_P(Programs, Takeover, ::testing::Values("decode", "denoise"));

}  // namespace
}  // namespace firebreak::workloads
