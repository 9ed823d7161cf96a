// SPDX-License-Identifier: Apache-2.0
// What a compiler made of ordinary C++ (testdata/loops.cu), under the oracle.
#include <gtest/gtest.h>

#include <array>

#include "idempotency/check.h"
#include "kernels/access/describe.h"
#include "kernels/ptx/parse.h"
#include "tests/doubles/access/labelled_launch_test_support.h"
#include "tests/doubles/base/test_seed.h"

namespace firebreak::idempotency {
namespace {

using access::testing::LabelledLaunch;

constexpr std::uint64_t buffer_bytes = 16U << 10;
constexpr std::array<std::uint32_t, 4> masks{1, 3, 15, 63};
constexpr int rounds = 6;  // of each mask

struct Counts {
  int completed = 0;
  int idempotent = 0;
  int called_idempotent = 0;
};

void check_case(const std::string& text, const LabelledLaunch& each, std::mt19937_64& random,
                Counts& counts) {
  auto module = ptx::parse(text);
  ASSERT_TRUE(module) << to_string(module.error());
  const std::uint32_t index = ptx::find_function(*module, each.kernel);
  ASSERT_NE(index, ptx::no_index) << each.kernel;
  const access::KernelSummary summary = access::summarise(*module, module->functions.at(index));
  TracedGpu gpu;
  std::array<std::uint64_t, 6> buffers{};
  buffers[0] = gpu.allocate(buffer_bytes);
  for (std::size_t i = 1; i < 4; ++i) buffers[i] = gpu.allocate_behind(buffer_bytes);
  ASSERT_TRUE(gpu.load(*std::move(module)));
  LaunchCase launch;
  launch.kernel = each.kernel;
  launch.grid = {each.grid[0], each.grid[1], each.grid[2]};
  launch.block = {each.block[0], each.block[1], each.block[2]};
  launch.parameters = access::testing::pack_arguments(each, buffers);
  access::DecisionWorkspace workspace;
  for (const std::uint32_t mask : masks) {
    for (int round = 0; round < rounds; ++round) {
      gpu.scramble(random(), mask);
      const auto report = check_launch(gpu, summary, launch, workspace, random);
      ASSERT_TRUE(report) << each.text << to_string(report.error());
      ASSERT_EQ(report->problem, "") << each.text << "\nmask " << mask << "\n" << access::explain(summary);
      counts.completed += report->end == RunEnd::Completed ? 1 : 0;
      counts.idempotent += report->truth.is_idempotent ? 1 : 0;
      counts.called_idempotent += report->decision.verdict == access::Verdict::Idempotent ? 1 : 0;
    }
  }
}

TEST(CompiledKernels, WhatIsSaidOfThemIsSo) {
  std::mt19937_64 random(test_seed());
  const std::string folder = FIREBREAK_ROOT "/lab/idempotency/testdata/";
  const std::string text = access::testing::read_text(folder + "loops.ptx");
  Counts counts;
  int cases = 0;
  for (const LabelledLaunch& each :
       access::testing::read_cases(access::testing::read_text(folder + "loops.cu"))) {
    ++cases;
    check_case(text, each, random, counts);
  }
  const int launches = cases * static_cast<int>(masks.size()) * rounds;
  EXPECT_GT(cases, 40);
  EXPECT_GT(counts.completed, launches * 9 / 10);
  // They are of both kinds, and some of the good ones are seen to be.
  EXPECT_GT(counts.idempotent, launches / 3);
  EXPECT_LT(counts.idempotent, launches * 9 / 10);
  EXPECT_GT(counts.called_idempotent, launches / 5);
}

}  // namespace
}  // namespace firebreak::idempotency
