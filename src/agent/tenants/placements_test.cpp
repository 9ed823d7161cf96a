// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/placements.h"

#include "tests/doubles/agent/agent_test_support.h"

namespace firebreak::agent {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

class PlacementsTest : public testing::Test {
 protected:
  Placement choose(std::uint64_t connection, const std::string& tenant, abi::Role role) {
    return placements.choose(connection, {tenant, role}).value();
  }
  abi::Placed put(std::uint64_t connection, const std::string& tenant, abi::Role role) {
    return placements.put(choose(connection, tenant, role), 0, 500).value();
  }

  AgentOptions options{"/run/agent", {{"LD_LIBRARY_PATH", "/soft"}}};
  std::unique_ptr<os::EventLoop> loop = std::move(os::EventLoop::create().value());
  FakeDomains domains;
  Tenants tenants;
  Credentials credentials;
  Placements placements{{options, *loop, domains, tenants, credentials}};
};

TEST_F(PlacementsTest, WhoIsPlacedIsToldAllThatItNeeds) {
  const Environment told = put(1, "llm", abi::Role::Standby).environment;
  EXPECT_THAT(told, Contains(Pair("LD_LIBRARY_PATH", "/soft")));
  EXPECT_THAT(told, Contains(Pair("CUDA_MPS_PIPE_DIRECTORY", "/mps/b")));
  EXPECT_THAT(told, Contains(Pair("FIREBREAK_SOCKET", "/run/agent")));
  EXPECT_THAT(told, Contains(Pair("FIREBREAK_TOKEN", credentials.known_token_of("llm"))));
  EXPECT_THAT(told, Contains(Pair("FIREBREAK_AGENT_RETURNS_MS", "500")));
}

TEST_F(PlacementsTest, WhoComesRunsWhereItWasToldToHoweverTheDomainsAreByThen) {
  put(1, "llm", abi::Role::Active);
  domains.states["a"] = mps::DomainState::Draining;
  EXPECT_EQ(placements.take("llm", abi::Role::Active).domain, "a");
  EXPECT_EQ(placements.take("llm", abi::Role::Active).domain, "b") << "as one that was told nothing";
  EXPECT_EQ(placements.take("llm", abi::Role::Active, "/mps/a").domain, "a") << "as its environment says";
  EXPECT_EQ(placements.take("llm", abi::Role::Active, "/elsewhere/a").domain, "b") << "as it would be told";
}

TEST_F(PlacementsTest, OneThatIsStillToComeCountsAsTheOtherHalf) {
  domains.states["a"] = mps::DomainState::Draining;
  put(1, "llm", abi::Role::Active);
  domains.states.clear();
  EXPECT_EQ(choose(2, "llm", abi::Role::Standby).domain, "a");
}

TEST_F(PlacementsTest, AConnectionHasOneAndTakesItsTokenAlong) {
  put(1, "llm", abi::Role::Active);
  put(1, "sd", abi::Role::Active);
  EXPECT_FALSE(placements.has("llm"));
  EXPECT_EQ(credentials.known_token_of("llm"), "");
  EXPECT_THAT(placements.coming(), ElementsAre("sd"));
  tenants.put(Tenant::create("sd", 0).value());
  EXPECT_THAT(placements.coming(), IsEmpty());
  placements.forget(1);
  EXPECT_NE(credentials.known_token_of("sd"), "") << "a tenant keeps it";
}

TEST_F(PlacementsTest, TheNextAgentKnowsThemForAsLongAsAnybodyWaitsForIt) {
  put(1, "llm", abi::Role::Active);
  const std::string token = credentials.known_token_of("llm");
  Credentials known;
  Placements next{{options, *loop, domains, tenants, known}};
  bool is_over = false;
  next.restore(placements.kept(), Milliseconds(0), [&] { is_over = true; });
  EXPECT_EQ(known.known_token_of("llm"), token);
  EXPECT_TRUE(next.has("llm"));
  while (!is_over) loop->run_once(Milliseconds(1000));
  EXPECT_FALSE(next.has("llm"));
  EXPECT_EQ(known.known_token_of("llm"), "");
}

TEST_F(PlacementsTest, WhoWasAdoptedBeforeThatWasWrittenDownIsNotToCome) {
  put(1, "llm", abi::Role::Active);
  tenants.put(Tenant::create("llm", 0).value()).active.pid = 1;
  Placements next{{options, *loop, domains, tenants, credentials}};
  next.restore(placements.kept(), Milliseconds(0), [] {});
  EXPECT_FALSE(next.has("llm"));
}

TEST_F(PlacementsTest, OfTooManyTheNextAgentKnowsSomeOfEachUsers) {
  constexpr uid_t alice = 1000, mallory = 1001;
  for (std::uint64_t i = 1; i <= 300; ++i) {
    const Placement its = choose(i, "many-" + std::to_string(i), abi::Role::Active);
    ASSERT_TRUE(placements.put(its, mallory, 500));
  }
  ASSERT_TRUE(placements.put(choose(1'000, "late", abi::Role::Active), alice, 500));
  const auto kept = placements.kept();
  EXPECT_EQ(kept.size(), 256U);
  EXPECT_THAT(kept, Contains(testing::Field(&KeptPlacement::tenant, "late")));
  EXPECT_THAT(kept, Contains(testing::Field(&KeptPlacement::tenant, "many-255")));
}

}  // namespace
}  // namespace firebreak::agent
