// SPDX-License-Identifier: Apache-2.0
/// Tests of where tenants are told to run, and that this is where the agent then takes them to be.
#include <nlohmann/json.hpp>

#include "tests/doubles/agent/agent_test_support.h"

namespace firebreak::agent {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

struct Placements : AgentTest {
  Environment place(Peer& command, const abi::Place& wish) {
    const abi::Message answer = ask(command, wish);
    const auto* placed = std::get_if<abi::Placed>(&answer);
    EXPECT_NE(placed, nullptr);
    return placed == nullptr ? Environment{} : placed->environment;
  }
  static std::pair<std::string, std::string> pipe(const std::string& domain) {
    return {"CUDA_MPS_PIPE_DIRECTORY", "/mps/" + domain};
  }
  nlohmann::json status() const { return nlohmann::json::parse(agent->status_json()); }
};

TEST_F(Placements, WhoIsPlacedWhileADomainDrainsRunsInTheOther) {
  Peer rogue = peer(), command = peer(), late = peer();
  ask(rogue, abi::Adopt{"rogue", abi::Role::Active, rogue.pid(), {}});
  uvm_event(rogue.pid());
  EXPECT_EQ(domains.states["a"], mps::DomainState::Draining);
  EXPECT_THAT(place(command, {"late", abi::Role::Active}), Contains(pipe("b")));
  // The process counts as being there although the domain serves again before it has come.
  domains.states.clear();
  ask(command, abi::Adopt{"late", abi::Role::Active, late.pid(), {}});
  EXPECT_EQ(status()["tenants"][0]["active"]["domain"], "b");
}

TEST_F(Placements, AFaultOfACopyEngineDrainsNobody) {
  Peer rogue = peer();
  ask(rogue, abi::Adopt{"rogue", abi::Role::Active, rogue.pid(), {}});
  fault::Fault fault;
  fault.fault_class = fault::FaultClass::MmuNonReplayable;
  fault.pid = rogue.pid();
  fault.source = fault::FaultSource::Xid;
  hear(fault);
  EXPECT_TRUE(domains.states.empty());
}

TEST_F(Placements, WithNoDomainThatTakesAnybodyTheyAreRefusedWithTheReasons) {
  domains.states = {{"a", mps::DomainState::Draining}, {"b", mps::DomainState::Restarting}};
  Peer command = peer();
  EXPECT_EQ(refusal(command, abi::Place{"llm", abi::Role::Active}),
            "no MPS domain takes the tenant now: a is draining, b is restarting (try again in a moment)");
}

TEST_F(Placements, TheStandbyIsPlacedBesideAnActiveThatIsStillToCome) {
  domains.states = {{"a", mps::DomainState::Draining}};
  Peer active_command = peer(), standby_command = peer();
  EXPECT_THAT(place(active_command, {"llm", abi::Role::Active}), Contains(pipe("b")));
  domains.states.clear();
  EXPECT_THAT(place(standby_command, {"llm", abi::Role::Standby}), Contains(pipe("a")));
}

TEST_F(Placements, ActivesThatAreStillToComeAreCountedOnTheirGpus) {
  domains.gpus = {{"a", "GPU-1"}, {"b", "GPU-2"}};
  Peer one = peer(), other = peer();
  EXPECT_THAT(place(one, {"llm", abi::Role::Active}), Contains(pipe("a")));
  EXPECT_THAT(place(other, {"diffusion", abi::Role::Active}), Contains(pipe("b")));
}

TEST_F(Placements, APlaceThatNobodyCameToIsForgottenWithItsConnection) {
  domains.states = {{"a", mps::DomainState::Draining}};
  Peer command = peer(), tenant = peer();
  place(command, {"llm", abi::Role::Active});
  command.hang_up();
  settle();
  domains.states.clear();
  ask(tenant, abi::Adopt{"llm", abi::Role::Active, tenant.pid(), {}});
  EXPECT_EQ(status()["tenants"][0]["active"]["domain"], "a");
}

TEST_F(Placements, LimitsAreInTheEnvironmentAndInTheStatus) {
  Peer command = peer(), tenant = peer();
  const Environment environment = place(command, {"llm", abi::Role::Active, "", 25, 1024});
  EXPECT_THAT(environment, Contains(Pair("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "25")));
  EXPECT_THAT(environment, Contains(Pair("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=1024M")));
  ask(command, abi::Adopt{"llm", abi::Role::Active, tenant.pid(), {}});
  EXPECT_EQ(status()["tenants"][0]["active"]["sm_percent"], 25);
  EXPECT_EQ(status()["tenants"][0]["active"]["memory_mib"], 1024);
}

TEST_F(Placements, WithoutLimitsThereAreNone) {
  Peer command = peer();
  EXPECT_THAT(place(command, {"llm", abi::Role::Active}),
              Not(Contains(Pair("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", testing::_))));
}

TEST_F(Placements, ALimitThatMakesNoSenseIsRefused) {
  Peer command = peer();
  EXPECT_THAT(refusal(command, abi::Place{"llm", abi::Role::Active, "", 101, 0}), HasSubstr("use 1 to 100"));
}

TEST_F(Placements, AGpuThatNoDomainHasIsRefused) {
  domains.gpus = {{"a", "GPU-0"}, {"b", "GPU-0"}};
  Peer command = peer();
  EXPECT_THAT(refusal(command, abi::Place{"llm", abi::Role::Active, "GPU-1", 0, 0}),
              HasSubstr("no MPS domain has the GPU GPU-1 (the agent has GPU-0, and others"));
}

TEST_F(Placements, TheStatusShowsDomainsWithTheirClients) {
  domains.states = {{"b", mps::DomainState::Restarting}};
  Peer tenant = peer();
  ask(tenant, abi::Adopt{"llm", abi::Role::Active, tenant.pid(), {}});
  const auto shown = status()["domains"];
  EXPECT_EQ(shown[0]["name"], "a");
  EXPECT_EQ(shown[0]["state"], "serving");
  EXPECT_EQ(shown[0]["clients"], nlohmann::json::array({tenant.pid()}));
  EXPECT_EQ(shown[1]["state"], "restarting");
  EXPECT_TRUE(shown[1]["clients"].empty());
}

}  // namespace
}  // namespace firebreak::agent
