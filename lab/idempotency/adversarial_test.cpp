// SPDX-License-Identifier: Apache-2.0
// The labelled kernels of src/kernels/access run: the labels are true, and what is predicted holds.
#include <gtest/gtest.h>

#include "idempotency/check.h"
#include "idempotency/mutation.h"
#include "kernels/access/describe.h"
#include "kernels/ptx/parse.h"
#include "tests/doubles/access/labelled_launch_test_support.h"
#include "tests/doubles/base/test_seed.h"

namespace firebreak::idempotency {
namespace {

using access::testing::LabelledLaunch;

constexpr std::uint64_t buffer_bytes = 64U << 10;

// One memory at two addresses is nothing that this GPU has.
bool can_run(const LabelledLaunch& each) {
  if (each.want.find("-not-run") != std::string::npos) return false;
  for (const std::string& argument : each.arguments)
    if (argument[0] == 'P' || argument[0] == 'Q') return false;
  return true;
}

LaunchReport run_case(const std::string& text, const LabelledLaunch& each, std::mt19937_64& random) {
  LaunchReport none;
  none.end = RunEnd::Endless;
  auto module = ptx::parse(text);
  if (!module) return none;
  const std::uint32_t index = ptx::find_function(*module, each.kernel);
  const access::KernelSummary summary = access::summarise(*module, module->functions.at(index));
  TracedGpu gpu;
  std::array<std::uint64_t, 6> buffers{};
  for (std::uint64_t& buffer : buffers) buffer = gpu.allocate(buffer_bytes);
  const Status loaded = gpu.load(*std::move(module));
  EXPECT_TRUE(loaded) << each.text;
  gpu.scramble(random());
  LaunchCase launch;
  launch.kernel = each.kernel;
  launch.grid = {each.grid[0], each.grid[1], each.grid[2]};
  launch.block = {each.block[0], each.block[1], each.block[2]};
  launch.parameters = access::testing::pack_arguments(each, buffers);
  access::DecisionWorkspace workspace;
  const auto report = check_launch(gpu, summary, launch, workspace, random);
  if (!report) return none;
  EXPECT_EQ(report->problem, "") << each.text << "\n" << access::explain(summary);
  return *report;
}

TEST(LabelledKernels, TheirLabelsAreTrue) {
  std::mt19937_64 random(test_seed());
  int run = 0;
  for (const auto& path : access::testing::labelled_files(FIREBREAK_ROOT "/src/kernels/access/testdata")) {
    const std::string text = access::testing::read_text(path);
    for (const LabelledLaunch& each : access::testing::read_cases(text)) {
      if (!can_run(each)) continue;
      const LaunchReport report = run_case(text, each, random);
      EXPECT_EQ(report.end, RunEnd::Completed) << each.text;
      ++run;
      const bool by_data = each.want.find("-by-bound") != std::string::npos || each.want == "unknown";
      if (by_data) continue;
      EXPECT_EQ(report.truth.is_idempotent, each.want.starts_with("idempotent"))
          << each.text << "\nread by line " << report.truth.read_line << ", written by line "
          << report.truth.write_line;
    }
  }
  EXPECT_GT(run, 100);
}

TEST(LabelledKernels, TheirMutantsThatAreNotIdempotentAreRefused) {
  std::mt19937_64 random(test_seed());
  int broken = 0;
  for (const auto& path : access::testing::labelled_files(FIREBREAK_ROOT "/src/kernels/access/testdata")) {
    const std::string text = access::testing::read_text(path);
    const std::vector<LabelledLaunch> cases = access::testing::read_cases(text);
    for (const PtxMutant& mutant : make_mutants(text)) {
      // One of the idempotent launches; which kernel was changed is not known here.
      const LabelledLaunch& each = cases[random() % cases.size()];
      if (!can_run(each)) continue;
      SCOPED_TRACE(path.filename().string() + ", " + mutant.what);
      const LaunchReport report = run_case(mutant.text, each, random);
      broken += report.end == RunEnd::Completed && !report.truth.is_idempotent ? 1 : 0;
    }
  }
  EXPECT_GT(broken, 50);
}

}  // namespace
}  // namespace firebreak::idempotency
