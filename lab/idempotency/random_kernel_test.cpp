// SPDX-License-Identifier: Apache-2.0
// Random kernels under the oracles: what is called idempotent is so by its trace, and torn runs done again
// come out equal; mutants that lose it are refused.
#include "idempotency/random_kernel.h"

#include <gtest/gtest.h>

#include "idempotency/check.h"
#include "idempotency/mutation.h"
#include "kernels/access/describe.h"
#include "kernels/ptx/parse.h"
#include "tests/doubles/base/test_seed.h"

namespace firebreak::idempotency {
namespace {

struct Counts {
  int launches = 0;
  int called_idempotent = 0;
  int truly_idempotent = 0;
  int truly_not = 0;
  int with_certain_writes = 0;
  int free_of_races = 0;
};

// Some launches of one kernel; false: the text is no PTX that runs.
bool check_kernel(const std::string& text, int launches, std::mt19937_64& random, Counts& counts) {
  auto module = ptx::parse(text);
  if (!module) return false;
  const access::KernelSummary summary = access::summarise(*module, module->functions.at(0));
  TracedGpu gpu;
  const RandomBuffers buffers = allocate_buffers(gpu);
  if (!gpu.load(*std::move(module))) return false;
  gpu.scramble(random());
  access::DecisionWorkspace workspace;
  for (int i = 0; i < launches; ++i) {
    const LaunchCase launch = make_random_launch(buffers, random);
    const auto report = check_launch(gpu, summary, launch, workspace, random);
    if (!report) return false;
    EXPECT_EQ(report->problem, "") << access::describe(summary, report->decision) << "\n"
                                   << access::explain(summary) << text;
    if (report->end != RunEnd::Completed) continue;
    const bool called = report->decision.verdict == access::Verdict::Idempotent;
    ++counts.launches;
    counts.called_idempotent += called ? 1 : 0;
    counts.truly_idempotent += report->truth.is_idempotent ? 1 : 0;
    counts.truly_not += report->truth.is_idempotent ? 0 : 1;
    counts.with_certain_writes += report->certain_bytes > 0 ? 1 : 0;
    counts.free_of_races += report->is_free_of_races ? 1 : 0;
  }
  return true;
}

TEST(RandomKernel, WhatIsCalledIdempotentIsSo) {
  constexpr int kernels = 300;
  std::mt19937_64 random(test_seed());
  Counts counts;
  for (int i = 0; i < kernels && !HasFailure(); ++i)
    ASSERT_TRUE(check_kernel(make_random_kernel(random), 4, random, counts));
  // The corpus has both, and most of what is idempotent is seen to be.
  EXPECT_GT(counts.truly_not, counts.launches / 20);
  EXPECT_GT(counts.called_idempotent, counts.truly_idempotent / 2);
  EXPECT_GT(counts.with_certain_writes, counts.launches / 5);
  EXPECT_GT(counts.free_of_races, counts.launches / 4);
  std::printf("%d launches, %d idempotent by their trace, %d of them called so; %d with certain writes, ",
              counts.launches, counts.truly_idempotent, counts.called_idempotent, counts.with_certain_writes);
  std::printf("%d free of races\n", counts.free_of_races);
}

TEST(RandomKernel, MutantsThatAreNotIdempotentAreRefused) {
  constexpr int kernels = 40;
  std::mt19937_64 random(test_seed());
  Counts counts;
  for (int i = 0; i < kernels && !HasFailure(); ++i)
    for (const PtxMutant& mutant : make_mutants(make_random_kernel(random))) {
      SCOPED_TRACE(mutant.what);
      check_kernel(mutant.text, 1, random, counts);
    }
  EXPECT_GT(counts.truly_not, 20);
}

}  // namespace
}  // namespace firebreak::idempotency
