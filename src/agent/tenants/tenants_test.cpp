// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/tenants.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/doubles/agent/surroundings_test_support.h"

namespace firebreak::agent {
namespace {

class TenantsTest : public testing::Test {
 protected:
  Connection connection(std::uint64_t id) {
    return {server, id, Entrance::Operators, std::move(os::socket_pair().value().first),
            os::PeerCredentials{}};
  }

  Tenants tenants;
  Tenant& llm = tenants.put(Tenant::create("llm", 0).value());
  Tenant& sd = tenants.put(Tenant::create("sd", 0).value());
  std::unique_ptr<os::EventLoop> loop = std::move(os::EventLoop::create().value());
  DeafHandler handler;
  Server server{*loop, handler};
};

TEST_F(TenantsTest, AreFoundByName) {
  EXPECT_EQ(tenants.find("llm"), &llm);
  EXPECT_EQ(tenants.index_of(llm), 0u);
  EXPECT_EQ(tenants.index_of(sd), 1u);
  tenants.erase("llm");
  EXPECT_EQ(tenants.find("llm"), nullptr);
  EXPECT_EQ(tenants.index_of(sd), 0u);
}

TEST_F(TenantsTest, AreFoundByTheConnectionOfEachOfTheirProcesses) {
  llm.active.connection = 7;
  sd.standby.connection = 8;
  sd.old_active.connection = 9;
  EXPECT_EQ(tenants.of(connection(7)), &llm);
  EXPECT_EQ(tenants.of(connection(8)), &sd);
  EXPECT_EQ(tenants.of(connection(9)), &sd);
  EXPECT_EQ(tenants.of(connection(10)), nullptr);
  EXPECT_EQ(tenants.of(connection(8), &Tenant::active), nullptr);
  EXPECT_EQ(tenants.member_of(connection(9)), &sd.old_active);
  EXPECT_EQ(tenants.active_of("sd", server).error().code, ErrorCode::NotFound);
}

TEST_F(TenantsTest, WhatIsPutOffIsDoneWhenTheLastAnswerIsThere) {
  int done = 0;
  EXPECT_FALSE(llm.put_off([&] { ++done; })) << "nothing is awaited";
  llm.await_answer();
  llm.await_answer();
  EXPECT_TRUE(llm.put_off([&] { ++done; }));
  llm.answered();
  EXPECT_EQ(done, 0);
  llm.answered();
  EXPECT_EQ(done, 1);
  EXPECT_FALSE(llm.put_off([&] { ++done; }));
}

// The question may have been the tenant's last deed.
TEST_F(TenantsTest, WhatWasPutOffMayBeTheEndOfTheTenant) {
  llm.await_answer();
  int done = 0;
  for (int i = 0; i < 2; ++i) {
    llm.put_off([&] {
      tenants.erase("llm");
      ++done;
    });
  }
  llm.answered();
  EXPECT_EQ(done, 2);
}

}  // namespace
}  // namespace firebreak::agent
