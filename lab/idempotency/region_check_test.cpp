// SPDX-License-Identifier: Apache-2.0
// Random sequences under the oracle: torn at a random instruction of a random operation, then done again.
#include "idempotency/region_check.h"

#include <gtest/gtest.h>

#include "tests/doubles/base/test_seed.h"

namespace firebreak::idempotency {
namespace {

TEST(RandomRegions, TornAndDoneAgainComeOutEqual) {
  RegionOptions options;
  options.seed = test_seed();
  const RegionCounts counts = check_random_regions(options);
  EXPECT_EQ(counts.problem, "");
  EXPECT_GT(counts.sequences, options.modules * options.sequences / 2);
  EXPECT_GT(counts.long_regions, counts.sequences / 4);
  EXPECT_GT(counts.only_in_region, 10U);
  EXPECT_GT(counts.saving, 10U);
  EXPECT_GT(counts.alone, 10U);
  std::printf("%s", to_text(counts).c_str());
}

TEST(RandomRegions, MutantsThatBreakAPlanAreRefused) {
  RegionOptions options;
  options.seed = test_seed();
  options.with_mutants = true;
  const RegionCounts counts = check_random_regions(options);
  EXPECT_EQ(counts.problem, "");
  EXPECT_GT(counts.broken, 5U);
  std::printf("%s", to_text(counts).c_str());
}

}  // namespace
}  // namespace firebreak::idempotency
