// SPDX-License-Identifier: Apache-2.0
/// Clients of a domain that nobody has placed there.
#include <nlohmann/json.hpp>

#include "shared/link/status_view.h"
#include "tests/doubles/agent/agent_test_support.h"

namespace firebreak::agent {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class Strangers : public AgentTest {
 protected:
  void mps_names(const std::string& domain, std::vector<pid_t> pids) {
    domains.callbacks.on_clients(domain, {clock.now(), std::move(pids)});
  }
  nlohmann::json foreign_in(const std::string& domain) {
    const auto all = nlohmann::json::parse(agent->status_json());
    for (const auto& each : all["domains"]) {
      if (each["name"] == domain) return each["foreign"];
    }
    return nullptr;
  }
  /// One that has loaded the guard by itself.
  void strays(const Peer& stranger) {
    strays::Stray stray;
    stray.pid = stranger.pid();
    stray.access = "store";
    stray.address = 0x40;
    stray.blocks = 1;
    detectors.callbacks.on_stray(stray);
  }
  std::vector<abi::Event> told(Peer& watcher, const std::string& what) {
    std::vector<abi::Event> events;
    while (auto received = watcher.receive()) {
      const auto& event = std::get<abi::Event>(received->message);
      if (event.what == abi::event_kind(what)) events.push_back(event);
    }
    return events;
  }
};

TEST_F(Strangers, OneIsToldOnceListedAndFollowed) {
  auto llm = pair("llm");
  Peer stranger = peer(), watcher = peer();
  ask(watcher, abi::Subscribe{});
  mps_names("a", {llm.active.pid(), stranger.pid()});
  mps_names("a", {llm.active.pid(), stranger.pid()});
  const auto events = told(watcher, "foreign");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].pid, stranger.pid());
  EXPECT_EQ(events[0].domain, "a");
  EXPECT_EQ(events[0].tenant, "");
  const nlohmann::json listed = foreign_in("a");
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0]["pid"], stranger.pid());
  EXPECT_EQ(listed[0]["name"], "agent_test_peer");
  EXPECT_EQ(listed[0]["uid"], std::to_string(::getuid()));
  EXPECT_EQ(listed[0]["came"], "not placed by us");
  EXPECT_THAT(foreign_in("b"), IsEmpty());
  EXPECT_THAT(detectors.followed, Contains(stranger.pid()).Times(1));
  EXPECT_THAT(detectors.clients["a"], ElementsAre(llm.active.pid(), stranger.pid()));
}

TEST_F(Strangers, ItsFaultIsItsDomains) {
  auto llm = pair("llm");
  Peer stranger = peer();
  mps_names("a", {llm.active.pid(), stranger.pid()});
  uvm_event(stranger.pid());
  EXPECT_EQ(link::parse_status(agent->status_json()).tenant("llm")->phase, pair::Phase::Suspecting);
  xid_31(stranger.pid());  // UVM has told of the domain's fault
  EXPECT_EQ(word(llm.page).epoch, 1u);
}

TEST_F(Strangers, WhatOneStraysToIsToldAndCountedAndItEnds) {
  auto llm = pair("llm");
  Peer stranger = peer(), watcher = peer();
  ask(watcher, abi::Subscribe{});
  mps_names("a", {llm.active.pid(), stranger.pid()});
  strays(stranger);
  const auto events = told(watcher, "stray");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].pid, stranger.pid());
  EXPECT_EQ(events[0].tenant, "");
  const auto counts = nlohmann::json::parse(agent->status_json())["counts"];
  EXPECT_EQ(counts["faults"]["mmu_replayable"]["contained"], 1);
  EXPECT_EQ(counts["past_faults"][0]["culprit"], "process " + std::to_string(stranger.pid()));
  EXPECT_TRUE(domains.terminations.contains(stranger.pid()));
  EXPECT_FALSE(domains.terminations.contains(llm.active.pid()));
}

TEST_F(Strangers, OneWhoseFaultTheDriverContainedEnds) {
  Peer stranger = peer();
  mps_names("a", {stranger.pid()});
  detectors.callbacks.on_contained(stranger.pid(), "contained");
  EXPECT_TRUE(domains.terminations.contains(stranger.pid()));
}

TEST_F(Strangers, ItsEndIsADangerToItsNeighboursAsAnyOther) {
  auto llm = pair("llm");
  Peer stranger = peer(), watcher = peer();
  ask(watcher, abi::Subscribe{});
  mps_names("a", {llm.active.pid(), stranger.pid()});
  detectors.callbacks.on_exit(stranger.pid());
  EXPECT_EQ(link::parse_status(agent->status_json()).tenant("llm")->phase, pair::Phase::Suspecting);
  EXPECT_EQ(told(watcher, "exited").size(), 1u);
  EXPECT_THAT(foreign_in("a"), IsEmpty());
}

TEST_F(Strangers, OneThatBecomesATenantIsNoneAnyMore) {
  Peer tenant = peer();
  mps_names("a", {tenant.pid()});
  EXPECT_EQ(foreign_in("a").size(), 1u);
  const os::Mapping page = join(tenant, "llm", abi::Role::Active);
  EXPECT_THAT(foreign_in("a"), IsEmpty());
  EXPECT_EQ(link::parse_status(agent->status_json()).tenant("llm")->active, tenant.pid());
}

TEST_F(Strangers, OneThatIsGoneAlreadyIsToldOnceAndNotListed) {
  Peer stranger = peer(), watcher = peer();
  const pid_t pid = stranger.pid();
  stranger.end(kernel);
  ask(watcher, abi::Subscribe{});
  mps_names("a", {pid});
  mps_names("a", {pid});
  const auto events = told(watcher, "foreign");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_THAT(events[0].text, HasSubstr("cannot be followed"));
  EXPECT_THAT(foreign_in("a"), IsEmpty());
  EXPECT_THAT(detectors.clients["a"], ElementsAre(pid)) << "it was there, and may be to blame";
}

TEST_F(Strangers, NobodyEndsOneInATenantsName) {
  Peer stranger = peer(), command = peer();
  mps_names("a", {stranger.pid()});
  EXPECT_THAT(refusal(command, abi::EndProcess{"", stranger.pid()}), Not(HasSubstr("(not refused)")));
  EXPECT_THAT(detectors.expected, IsEmpty());
}

TEST_F(Strangers, WhoeverATenantHasStartedIsSaidToBeItsOwn) {
  // The peers are all children of this process, which is adopted here.
  Peer command = peer(), child = peer();
  ask(command, abi::Adopt{"llm", abi::Role::Active, ::getpid()});
  mps_names("a", {child.pid()});
  ASSERT_EQ(foreign_in("a").size(), 1u);
  EXPECT_THAT(foreign_in("a")[0]["came"].get<std::string>(), HasSubstr("of tenant llm"));
}

}  // namespace
}  // namespace firebreak::agent
