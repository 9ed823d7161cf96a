// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/descriptor_budget.h"

#include "tests/doubles/agent/agent_test_support.h"

namespace firebreak::agent {
namespace {

class DescriptorBudgetTest : public testing::Test {
 protected:
  DescriptorBudget budget_of(std::uint64_t limit) {
    return {{tenants, placements, processes, weights}, limit};
  }
  std::uint64_t promised() { return budget_of(0).use().promised; }
  void place(std::uint64_t connection, const std::string& tenant, abi::Role role) {
    ASSERT_TRUE(placements.put(placements.choose(connection, {tenant, role}).value(), 0, 0));
  }

  os::RealKernel kernel;
  AgentOptions options;
  std::unique_ptr<os::EventLoop> loop = std::move(os::EventLoop::create().value());
  FakeDomains domains;
  Tenants tenants;
  Credentials credentials;
  Processes processes;
  SharedWeights weights{0, Milliseconds(0)};
  Placements placements{{options, *loop, domains, tenants, credentials}};
  const std::uint64_t of_a_pair = budget_of(0).use().of_a_pair;
};

TEST_F(DescriptorBudgetTest, ATenantIsPromisedBothItsProcessesFromTheMomentWhenOneIsToCome) {
  EXPECT_EQ(promised(), 0u);
  place(1, "llm", abi::Role::Active);
  EXPECT_EQ(promised(), of_a_pair);
  place(2, "llm", abi::Role::Standby);
  EXPECT_EQ(promised(), of_a_pair) << "of the same tenant";
  tenants.put(Tenant::create("llm", 0).value());
  EXPECT_EQ(promised(), of_a_pair);
  ASSERT_TRUE(processes.add(kernel, ::getpid(), "llm", "a"));
  EXPECT_EQ(promised(), of_a_pair);
  processes.die(::getpid());
  EXPECT_GT(promised(), of_a_pair) << "what is held of one that is gone";
}

TEST_F(DescriptorBudgetTest, WhoIsPromisedRoomHasItAndNobodyElse) {
  DescriptorBudget budget = budget_of(budget_of(0).use().reserve + of_a_pair);
  EXPECT_TRUE(budget.room_for_allocation("weights"));
  tenants.put(Tenant::create("llm", 0).value());
  EXPECT_TRUE(budget.is_promised("llm"));
  EXPECT_EQ(budget.room_for_allocation("weights").error().code, ErrorCode::ResourceExhausted);
  EXPECT_EQ(budget.room_for_process_of("sd").error().code, ErrorCode::ResourceExhausted);
}

TEST_F(DescriptorBudgetTest, WithoutALimitNobodyCounts) {
  for (const char* name : {"a", "b", "c"}) tenants.put(Tenant::create(name, 0).value());
  EXPECT_TRUE(budget_of(0).room_for_process_of("another"));
}

TEST_F(DescriptorBudgetTest, WhatIsOpenAtTheStartIsPromisedToNobodyButForWhatWasKept) {
  DescriptorBudget budget = budget_of(0);
  budget.begin(2);
  const auto open = budget.use().open;
  EXPECT_EQ(budget.use().promised, open - 2);
}

}  // namespace
}  // namespace firebreak::agent
