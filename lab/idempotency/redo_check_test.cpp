// SPDX-License-Identifier: Apache-2.0
// Faults at random instants of random sequences.
#include "idempotency/redo_check.h"

#include <gtest/gtest.h>

#include "tests/doubles/base/test_seed.h"

namespace firebreak::idempotency {
namespace {

TEST(RandomFaults, LeadToTheSameMemoryOrARefusal) {
  RedoOptions options;
  options.seed = test_seed();
  const RedoCounts counts = check_redo(options);
  EXPECT_EQ(counts.problem, "");
  EXPECT_EQ(counts.faults, options.faults);
  EXPECT_GT(counts.equal, options.faults / 2);
  EXPECT_GT(counts.with_restored, 10U);
  EXPECT_GT(counts.refused, 5U);
  EXPECT_GT(counts.damaged, 5U);
  std::printf("%s", to_text(counts).c_str());
}

}  // namespace
}  // namespace firebreak::idempotency
