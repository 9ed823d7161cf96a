// SPDX-License-Identifier: Apache-2.0
// Tenants that are told to end, and tenants that strayed.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "ground/base/units.h"
#include "tests/doubles/agent/agent_test_support.h"

namespace firebreak::agent {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class AgentEndings : public AgentTest {
 protected:
  /// A process that the operator started as that tenant.
  Peer adopted(const std::string& name, abi::StrayPolicy strays = abi::StrayPolicy::Default) {
    Peer tenant = peer(), command = peer();
    EXPECT_TRUE(std::holds_alternative<abi::Done>(
        ask(command, abi::Adopt{name, abi::Role::Active, tenant.pid(), strays})));
    return tenant;
  }
  void strays(pid_t pid, std::uint64_t blocks = 1) {
    strays::Stray stray;
    stray.when = strayed_at;
    stray.pid = pid;
    stray.access = "store";
    stray.address = 0x40;
    stray.blocks = blocks;
    detectors.callbacks.on_stray(stray);
  }
  const Monotonic strayed_at = from_ns(4'000);
  bool is_ended(const Peer& tenant) { return domains.terminations.contains(tenant.pid()); }
  /// MPS has taken it off the GPU, and it is gone.
  void ends(const Peer& tenant) {
    domains.terminations.at(tenant.pid())({});
    detectors.callbacks.on_exit(tenant.pid());
    settle();
  }
  nlohmann::json guard() { return nlohmann::json::parse(agent->status_json())["tenants"][0]["guard"]; }
  std::vector<std::string> heard(Peer& subscriber, const std::string& what) {
    settle();
    std::vector<std::string> texts;
    while (auto received = subscriber.receive()) {
      const auto& event = std::get<abi::Event>(received->message);
      if (event.what == abi::event_kind(what)) texts.push_back(event.text);
    }
    return texts;
  }
};

TEST_F(AgentEndings, ATenantThatIsToldToEndTakesItsStandbyAlongAndNobodyIsPromoted) {
  ProtectedTenant llm = pair("llm");
  Peer command = peer();
  command.send(abi::EndTenant{"llm", 1000});
  settle();
  EXPECT_TRUE(word(llm.page).finished);
  EXPECT_TRUE(is_ended(llm.active));
  EXPECT_TRUE(is_ended(llm.standby));
  EXPECT_THAT(domains.asked, testing::UnorderedElementsAre("a", "b"));
  ends(llm.active);
  EXPECT_EQ(word(llm.page).epoch, 0u);
  EXPECT_FALSE(command.receive().has_value());  // the standby is still there
  ends(llm.standby);
  const auto answer = command.receive();
  ASSERT_TRUE(answer.has_value());
  EXPECT_THAT(std::get<abi::Ended>(answer->message).text,
              AllOf(HasSubstr("process " + std::to_string(llm.active.pid()) + ": MPS took it off the GPU"),
                    HasSubstr("process " + std::to_string(llm.standby.pid()) + ": MPS took it off the GPU")));
}

TEST_F(AgentEndings, NobodyCanBeToldToEndWhoIsNotThere) {
  Peer command = peer();
  EXPECT_THAT(refusal(command, abi::EndTenant{"llm", 0}), HasSubstr("no tenant 'llm'"));
  Peer tenant = adopted("other");
  EXPECT_THAT(refusal(command, abi::EndProcess{"llm", tenant.pid()}), HasSubstr("has no process"));
  EXPECT_THAT(domains.asked, IsEmpty());
}

TEST_F(AgentEndings, ATenantOfWhichOnlyMemoryIsLeftEndsAtOnce) {
  Peer active = peer(), command = peer();
  os::Mapping page = join(active, "llm", abi::Role::Active);
  page.as<abi::SharedPage>()->areas[0].term = 1;
  page.as<abi::SharedPage>()->areas[0].next_step = 7;  // something to go on with
  detectors.callbacks.on_exit(active.pid());
  EXPECT_THAT(agent->status_json(), HasSubstr("\"lost\""));
  EXPECT_TRUE(std::holds_alternative<abi::Ended>(ask(command, abi::EndTenant{"llm", 0})));
  EXPECT_THAT(refusal(command, abi::EndTenant{"llm", 0}), HasSubstr("no tenant 'llm'"));
}

TEST_F(AgentEndings, OneProcessThatIsToldToEndIsTakenOverByItsStandby) {
  ProtectedTenant llm = pair("llm");
  Peer command = peer();
  EXPECT_TRUE(std::holds_alternative<abi::Done>(ask(command, abi::EndProcess{"llm", llm.active.pid()})));
  EXPECT_FALSE(is_ended(llm.standby));
  EXPECT_THAT(detectors.expected, IsEmpty());
  ends(llm.active);
  EXPECT_THAT(detectors.expected, ElementsAre(llm.active.pid()));
  EXPECT_EQ(word(llm.page).epoch, 1u);
}

TEST_F(AgentEndings, ANeighbourThatEndedInGoodOrderIsNoDangerAndAnotherIs) {
  ProtectedTenant llm = pair("llm");
  Peer orderly = adopted("orderly"), rough = adopted("rough"), command = peer(), subscriber = peer();
  ask(subscriber, abi::Subscribe{});
  ask(command, abi::EndProcess{"orderly", orderly.pid()});
  ask(command, abi::EndProcess{"rough", rough.pid()});
  ends(orderly);
  EXPECT_THAT(heard(subscriber, "phase"), IsEmpty());
  domains.terminations.at(rough.pid())(fail(ErrorCode::Timeout, "no answer"));
  detectors.callbacks.on_exit(rough.pid());
  EXPECT_THAT(heard(subscriber, "phase"), ElementsAre(HasSubstr("suspecting")));
}

TEST_F(AgentEndings, MpsIsNotAskedWhileAFaultOfItsDomainIsUnderWay) {
  Peer tenant = adopted("llm"), command = peer();
  xid(FakeDomains::server_of_a);
  ask(command, abi::EndProcess{"llm", tenant.pid()});
  EXPECT_THAT(domains.asked, IsEmpty());
  Peer other = adopted("other");
  clock.advance(Milliseconds(pair::suspicion_ms));
  ask(command, abi::EndProcess{"other", other.pid()});
  EXPECT_TRUE(is_ended(other));
}

TEST_F(AgentEndings, ATenantThatStrayedEndsWithItsStandby) {
  ProtectedTenant llm = pair("llm");
  Peer subscriber = peer();
  ask(subscriber, abi::Subscribe{});
  strays(llm.active.pid());
  EXPECT_TRUE(is_ended(llm.active));
  EXPECT_TRUE(is_ended(llm.standby));
  strays(llm.active.pid(), 2);  // stray while it ends
  ends(llm.active);
  EXPECT_EQ(word(llm.page).epoch, 0u);
  settle();
  std::vector<std::string> whats, texts;
  while (auto received = subscriber.receive()) {
    const auto& event = std::get<abi::Event>(received->message);
    if (event.what == abi::EventKind::Stray) {
      EXPECT_EQ(event.at_ns, to_ns(strayed_at));
    }
    whats.emplace_back(to_string(event.what));
    texts.push_back(event.text);
  }
  EXPECT_THAT(whats, ElementsAre("incident", "stray", "phase", "ending", "ending", "exited"));
  EXPECT_THAT(texts[0], HasSubstr("store to 0x40, far from every allocation: contained; culprit llm"));
  EXPECT_EQ(texts[1], "store to 0x40, far from every allocation");
  EXPECT_THAT(texts[3], HasSubstr("its standby ends too"));
}

TEST_F(AgentEndings, AStandbyThatStrayedEndsAlone) {
  ProtectedTenant llm = pair("llm");
  strays(llm.standby.pid());
  EXPECT_TRUE(is_ended(llm.standby));
  EXPECT_FALSE(is_ended(llm.active));
}

TEST_F(AgentEndings, WhoIsOnlyReportedGoesOnUpToItsNumberOfBlocks) {
  Peer tenant = adopted("llm", abi::StrayPolicy::Report);
  strays(tenant.pid(), 1);
  strays(tenant.pid(), AgentOptions{}.stray_blocks_max);
  EXPECT_FALSE(is_ended(tenant));
  strays(tenant.pid(), AgentOptions{}.stray_blocks_max + 1);
  EXPECT_TRUE(is_ended(tenant));
}

TEST_F(AgentEndings, ATenantHasNoSayInWhatItsStraysAreAnsweredBy) {
  Peer tenant = peer();
  ask(tenant, abi::Adopt{"llm", abi::Role::Active, tenant.pid(), abi::StrayPolicy::Report});
  strays(tenant.pid());
  EXPECT_TRUE(is_ended(tenant));
}

TEST_F(AgentEndings, TheOperatorsWordCountsForAProcessThatHasJoinedAlready) {
  Peer tenant = peer(), command = peer();
  join(tenant, "llm", abi::Role::Active);
  ask(command, abi::Adopt{"llm", abi::Role::Active, tenant.pid(), abi::StrayPolicy::Report});
  strays(tenant.pid());
  EXPECT_FALSE(is_ended(tenant));
}

TEST_F(AgentEndings, WhatOneProcessStraysToIsOneContainedFault) {
  Peer first = adopted("llm", abi::StrayPolicy::Report), second = adopted("other", abi::StrayPolicy::Report);
  strays(first.pid());
  strays(first.pid(), 2);
  strays(second.pid());
  const auto counts = nlohmann::json::parse(agent->status_json())["counts"];
  EXPECT_EQ(counts["faults"]["mmu_replayable"]["contained"], 2);
  EXPECT_EQ(counts["culprits"]["known"], 2);
}

TEST_F(AgentEndings, TheStatusTellsOfGuardAndStrays) {
  Peer tenant = adopted("llm", abi::StrayPolicy::Report);
  EXPECT_EQ(guard()["state"], "none");
  detectors.straying[tenant.pid()] = {
      strays::GuardReport{abi::GuardState::Off, "no UVM descriptor \xff", 3 * gib}, 17, 2};
  strays(tenant.pid(), 2);
  const nlohmann::json now = guard();
  EXPECT_EQ(now["state"], "off");
  EXPECT_THAT(now["note"].get<std::string>(), HasSubstr("no UVM descriptor"));
  EXPECT_EQ(now["guard_range_bytes"], 3 * gib);
  EXPECT_EQ(now["on_stray"], "report");
  EXPECT_EQ(now["strays"], 17);
  EXPECT_EQ(now["stray_blocks"], 2);
  EXPECT_EQ(now["last_stray"], "store to 0x40, far from every allocation");
}

TEST_F(AgentEndings, AGuardThatIsOffIsTold) {
  Peer tenant = adopted("llm"), subscriber = peer();
  ask(subscriber, abi::Subscribe{});
  detectors.callbacks.on_guard(tenant.pid(), {abi::GuardState::Off, "no UVM descriptor", 0});
  EXPECT_THAT(heard(subscriber, "guard"), ElementsAre("off: no UVM descriptor"));
}

TEST_F(AgentEndings, AGuardThatIsOffAlreadyIsToldToo) {
  Peer subscriber = peer();
  ask(subscriber, abi::Subscribe{});
  detectors.guard_at_once = {abi::GuardState::Off, "no UVM descriptor", 0};
  const Peer tenant = adopted("llm");
  EXPECT_THAT(heard(subscriber, "guard"), ElementsAre("off: no UVM descriptor"));
}

TEST_F(AgentEndings, AStrayOfAStrangerIsNothing) {
  strays(4194304);
  EXPECT_THAT(domains.asked, IsEmpty());
}

TEST_F(AgentEndings, WhoseFaultTheDriverContainedIsTakenOffTheGpuAtOnceAndItsStandbyEndsToo) {
  ProtectedTenant rogue = pair("rogue"), neighbour = pair("neighbour");
  Peer subscriber = peer();
  ask(subscriber, abi::Subscribe{});
  // UVM tells of it as of any fatal fault, and first.
  fault::Fault fatal;
  fatal.fault_class = fault::FaultClass::MmuNonReplayable;
  fatal.pid = rogue.active.pid();
  fatal.source = fault::FaultSource::UvmEvent;
  hear(fatal);
  detectors.callbacks.on_contained(rogue.active.pid(), "contained: write, invalid pde, no_range");
  detectors.callbacks.on_contained(rogue.active.pid(), "contained: write, invalid pde, no_range");
  EXPECT_TRUE(is_ended(rogue.active));
  EXPECT_TRUE(is_ended(rogue.standby));
  EXPECT_FALSE(is_ended(neighbour.active));
  EXPECT_THAT(heard(subscriber, "ending"), testing::Each(HasSubstr("its fault was contained: write")));
  ends(rogue.active);
  xid(neighbour.active.pid());
  EXPECT_EQ(word(rogue.page).epoch, 0u);
  EXPECT_EQ(word(neighbour.page).epoch, 0u) << "an Xid that names a client has no second witness";
}

TEST_F(AgentEndings, AContainedFaultOfAStrangerIsNothingToTheAgent) {
  Peer stranger = peer();
  detectors.callbacks.on_contained(stranger.pid(), "contained");
  settle();
  EXPECT_FALSE(is_ended(stranger));
}

}  // namespace
}  // namespace firebreak::agent
