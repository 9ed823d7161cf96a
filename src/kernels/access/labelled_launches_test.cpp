// SPDX-License-Identifier: Apache-2.0
// The adversarial kernels of testdata: each decision as its label wants it.
#include <gtest/gtest.h>

#include "kernels/access/describe.h"
#include "kernels/ptx/parse.h"
#include "tests/doubles/access/labelled_launch_test_support.h"

namespace firebreak::access {
namespace {

using testing::LabelledLaunch;

constexpr std::uint64_t buffer_bytes = 64U << 10;
constexpr std::uint64_t first = 0x7000'0000'0000;
constexpr std::uint64_t apart = 1U << 20;
// A to D, then P and Q: one memory.
constexpr std::array<std::uint64_t, 6> buffers{
    first, first + apart, first + 2 * apart, first + 3 * apart, first + 4 * apart, first + 5 * apart};

std::vector<MemoryRange> make_memory() {
  std::vector<MemoryRange> memory;
  for (const std::uint64_t address : buffers) memory.push_back({address, buffer_bytes, address});
  memory.back().canonical_address = buffers[4];
  return memory;
}

std::string with_dashes(std::string text) {
  std::replace(text.begin(), text.end(), ' ', '-');
  return text;
}

bool is_wanted(const LabelledLaunch& each, Verdict verdict) {
  const std::string got = with_dashes(to_string(verdict));
  if (each.want.find("-or-unknown") != std::string::npos && verdict == Verdict::Unknown) return true;
  return each.want == got || each.want.starts_with(got + "-");
}

class LabelledLaunches : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(LabelledLaunches, AreDecidedAsWanted) {
  const std::string text = testing::read_text(GetParam());
  const auto module = ptx::parse(text, GetParam().filename().string());
  ASSERT_TRUE(module) << module.error().message;
  const std::vector<LabelledLaunch> cases = testing::read_cases(text);
  ASSERT_FALSE(cases.empty());
  const std::vector<MemoryRange> memory = make_memory();
  DecisionWorkspace workspace;
  for (const LabelledLaunch& each : cases) {
    const std::uint32_t index = ptx::find_function(*module, each.kernel);
    ASSERT_NE(index, ptx::no_index) << each.text;
    const KernelSummary summary = summarise(*module, module->functions[index]);
    const std::vector<std::byte> parameters = testing::pack_arguments(each, buffers);
    LaunchArguments launch;
    launch.grid = each.grid;
    launch.block = each.block;
    launch.parameters = parameters;
    launch.memory = memory;
    const Decision decision = decide(summary, launch, workspace);
    EXPECT_TRUE(is_wanted(each, decision.verdict)) << each.text << "\n"
                                                   << describe(summary, decision) << "\n"
                                                   << explain(summary);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, LabelledLaunches,
                         ::testing::ValuesIn(testing::labelled_files(FIREBREAK_ACCESS_TESTDATA)),
                         [](const auto& file) { return file.param.stem().string(); });

}  // namespace
}  // namespace firebreak::access
