// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/warm_standbys.h"

#include <string>

#include "tests/doubles/agent/agent_test_support.h"
#include "tests/doubles/os/fake_kernel.h"

namespace firebreak::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class WarmStandbysAlone : public testing::Test {
 protected:
  WarmStandbysAlone() {
    domains.has_servers = false;
    llm.standby = {.pid = 1, .start_time = {}, .image = {}, .domain = "b"};
    llm.standby.connection = 7;
    llm.pair = {pair::Phase::Serving, pair::Standby::Joined, 0};
  }
  void starts(pid_t pid, const std::string& start_time, const std::string& state = "S") {
    kernel.set_file("/proc/" + std::to_string(pid) + "/stat", std::to_string(pid) + " (mps) " + state +
                                                                  " 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 " +
                                                                  start_time + " 0 0");
  }

  std::unique_ptr<os::EventLoop> loop = std::move(os::EventLoop::create().value());
  os::FakeKernel kernel;
  FakeDomains domains;
  DeafHandler handler;
  Server server{*loop, handler};
  Tenants tenants;
  Tenant& llm = tenants.put(Tenant::create("llm", 0).value());
  std::vector<std::string> stood_by;  ///< tenants whose standby stood by, and what is not as it should be
  WarmStandbys warm{
      {*loop, kernel, domains, server, tenants},
      std::chrono::minutes(10),
      [this](Tenant&, const std::optional<Asker>&, const std::string& but) { stood_by.push_back(but); }};
};

TEST_F(WarmStandbysAlone, AStandbyWaitsForItsServer) {
  warm.warmed_up(llm, std::nullopt);
  EXPECT_TRUE(warm.is_warm(llm));
  EXPECT_THAT(stood_by, IsEmpty());
  warm.let_stand_by_in("a");
  EXPECT_THAT(stood_by, IsEmpty());
  warm.let_stand_by_in("b");
  EXPECT_THAT(stood_by, ElementsAre(""));
  EXPECT_FALSE(warm.is_warm(llm));
}

TEST_F(WarmStandbysAlone, WhoseServerIsKnownStandsByAtOnce) {
  starts(50, "100");
  EXPECT_TRUE(warm.add_server("b", 50));
  warm.warmed_up(llm, std::nullopt);
  EXPECT_THAT(stood_by, ElementsAre(""));
}

TEST_F(WarmStandbysAlone, WhoHasToTakeOverDoesNotWait) {
  llm.pair.phase = pair::Phase::Suspecting;
  warm.warmed_up(llm, std::nullopt);
  EXPECT_THAT(stood_by, ElementsAre(""));
}

TEST_F(WarmStandbysAlone, OneThatHasHungUpIsWarmNoMore) {
  warm.warmed_up(llm, Asker{7, 1});
  llm.standby.connection = 8;  // the standby says so anew
  EXPECT_FALSE(warm.is_warm(llm));
  warm.let_stand_by_in("b");
  EXPECT_THAT(stood_by, IsEmpty());
}

TEST_F(WarmStandbysAlone, AServerIsNewOnce) {
  starts(50, "100");
  EXPECT_TRUE(warm.add_server("b", 50));
  EXPECT_FALSE(warm.add_server("b", 50));
  starts(50, "200");  // another process has that number
  EXPECT_FALSE(warm.knows_server_of("b"));
  EXPECT_TRUE(warm.add_server("b", 50));
  EXPECT_TRUE(warm.knows_server_of("b"));
  EXPECT_EQ(warm.servers().size(), 1u) << "the one before was replaced";
}

TEST_F(WarmStandbysAlone, AServerThatIsNotToBeLookedAtHasNotEndedForThat) {
  starts(50, "100");
  warm.add_server("b", 50);
  kernel.refuse("/proc/50/stat", Error{ErrorCode::Timeout, "it does not let itself be looked at", {}});
  EXPECT_TRUE(warm.knows_server_of("b"));
}

TEST_F(WarmStandbysAlone, AServerThatHasEndedIsNone) {
  starts(50, "100");
  starts(51, "100");
  warm.add_server("a", 50);
  warm.add_server("b", 51);
  starts(51, "100", "Z");
  EXPECT_TRUE(warm.knows_server_of("a"));
  EXPECT_FALSE(warm.knows_server_of("b"));
  warm.forget_ended_servers();
  ASSERT_EQ(warm.servers().size(), 1u);
  EXPECT_EQ(warm.servers().front().domain, "a");
}

}  // namespace
}  // namespace firebreak::agent
