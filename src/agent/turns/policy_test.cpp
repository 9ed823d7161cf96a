// SPDX-License-Identifier: Apache-2.0
#include "agent/turns/policy.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace firebreak::turns {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

const Policy& policy(const char* name) { return **policy_named(name); }
const Monotonic now{seconds(1'000)};

TEST(Policy, OnlyTheFreeOneLetsEverybodyCompute) {
  EXPECT_TRUE(policy("free").is_free());
  EXPECT_FALSE(policy("priority").is_free());
  EXPECT_FALSE(policy("deadline").is_free());
}

TEST(Policy, OneThatDoesNotExistIsRefused) {
  ASSERT_FALSE(policy_named("fair"));
  EXPECT_EQ(policy_named("fair").error().code, ErrorCode::InvalidArgument);
}

TEST(Priority, LiveIsMoreUrgentThanBatchWhateverTheDeadline) {
  const Claim live{"a", Class::Live, 1, {}, {}};
  const Claim batch{"b", Class::Batch, 1, now, {}};
  EXPECT_LT(policy("priority").urgency(live, now), policy("priority").urgency(batch, now));
}

TEST(Deadline, IsWhatIsLeftOnceTheWorkIsDone) {
  const Claim claim{"a", Class::Batch, 20, now + seconds(3), milliseconds(50)};
  EXPECT_EQ(policy("deadline").urgency(claim, now), seconds(2));
  EXPECT_EQ(policy("deadline").urgency(claim, now + seconds(1)), seconds(1));
}

TEST(Deadline, InThePastCountsAsNow) {
  const Claim late{"a", Class::Batch, 20, now - hours(1), milliseconds(50)};
  const Claim due{"b", Class::Batch, 20, now, milliseconds(50)};
  EXPECT_EQ(policy("deadline").urgency(late, now), policy("deadline").urgency(due, now));
}

TEST(Deadline, TooFarAwayCountsAsNone) {
  const Claim none{"a", Class::Batch, 20, {}, milliseconds(50)};
  const Claim far{"b", Class::Batch, 20, now + Policy::farthest + Nanoseconds(1), milliseconds(50)};
  const Claim last{"c", Class::Batch, 20, now + Policy::farthest, milliseconds(50)};
  EXPECT_EQ(policy("deadline").urgency(far, now), policy("deadline").urgency(none, now));
  EXPECT_LT(policy("deadline").urgency(last, now), policy("deadline").urgency(none, now));
}

// The numbers are a tenant's own.
TEST(Deadline, WhateverTheNumbersItIsWithinBounds) {
  constexpr std::uint64_t most_units = std::numeric_limits<std::uint64_t>::max();
  for (const Nanoseconds cost : {Nanoseconds::min(), Nanoseconds(-1), Nanoseconds(1), Nanoseconds::max()}) {
    for (const std::uint64_t units : {std::uint64_t{1}, std::uint64_t{1} << 40, most_units}) {
      for (const Monotonic deadline : {Monotonic::min(), now, Monotonic::max()}) {
        const Nanoseconds urgency =
            policy("deadline").urgency({"a", Class::Batch, units, deadline, cost}, now);
        EXPECT_LE(urgency, Policy::farthest);
        EXPECT_GE(urgency, -Policy::farthest);
      }
    }
  }
}

}  // namespace
}  // namespace firebreak::turns
