// SPDX-License-Identifier: Apache-2.0
// Kernels that are likely to be taken wrongly, under the oracle.
#include "idempotency/adversarial_kernel.h"

#include <gtest/gtest.h>

#include <cctype>

#include "idempotency/random_launches.h"
#include "tests/doubles/base/test_seed.h"

namespace firebreak::idempotency {
namespace {

class AdversarialKernel : public testing::TestWithParam<AdversarialKind> {};

TEST_P(AdversarialKernel, WhatIsSaidOfItIsSo) {
  RandomLaunchOptions options;
  options.is_adversarial = true;
  options.kind = GetParam();
  options.kernel_count = 60;
  options.launches_per_kernel = 4;
  options.seed = test_seed();
  const RandomLaunchCounts counts = check_random_launches(options);
  EXPECT_TRUE(counts.problems.empty()) << to_text(counts);
  // Most of them run, and there is something to be said of them.
  EXPECT_GT(counts.launches, 2 * counts.other_ends);
  EXPECT_GT(counts.launches, options.kernel_count);
}

INSTANTIATE_TEST_SUITE_P(OfEachKind, AdversarialKernel, testing::ValuesIn(adversarial_kinds),
                         [](const testing::TestParamInfo<AdversarialKind>& kind) {
                           std::string name = to_string(kind.param);
                           std::erase_if(name, [](unsigned char c) { return std::isalnum(c) == 0; });
                           return name;
                         });

}  // namespace
}  // namespace firebreak::idempotency
