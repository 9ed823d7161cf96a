// SPDX-License-Identifier: Apache-2.0
/// The agent's decisions, with peers that are real processes and surroundings that are not: no GPU, no MPS,
/// no waiting.
#include "agent/firebreakd/agent.h"

#include <cstdio>
#include <filesystem>

#include "shared/link/status_view.h"
#include "tests/doubles/agent/agent_test_support.h"

namespace firebreak::agent {
namespace {

using testing::HasSubstr;

TEST_F(AgentTest, PlacesTheStandbyInTheOtherDomain) {
  Peer command = peer();
  const auto active = std::get<abi::Placed>(ask(command, abi::Place{"llm", abi::Role::Active})).environment;
  const auto standby = std::get<abi::Placed>(ask(command, abi::Place{"llm", abi::Role::Standby})).environment;
  EXPECT_THAT(active,
              testing::Contains(std::pair<std::string, std::string>("CUDA_MPS_PIPE_DIRECTORY", "/mps/a")));
  EXPECT_THAT(standby,
              testing::Contains(std::pair<std::string, std::string>("CUDA_MPS_PIPE_DIRECTORY", "/mps/b")));
  EXPECT_THAT(standby, testing::Contains(std::pair<std::string, std::string>("FIREBREAK_ROLE", "standby")));
  EXPECT_THAT(standby, testing::Contains(std::pair<std::string, std::string>("LD_LIBRARY_PATH", "/soft")));
}

TEST_F(AgentTest, AFaultThatNamesTheServerPromotesTheReadyStandby) {
  Peer active = peer(), standby = peer();
  const os::Mapping page = join(active, "llm", abi::Role::Active);
  join(standby, "llm", abi::Role::Standby);
  EXPECT_TRUE(std::holds_alternative<abi::Done>(ask(standby, abi::Ready{})));
  xid(FakeDomains::server_of_a);
  EXPECT_EQ(word(page).epoch, 1u);
}

TEST_F(AgentTest, WhatATenantWroteToItsStandardErrorIsEvidence) {
  Peer tenant = peer(), command = peer();
  ask(command, abi::Adopt{"llm", abi::Role::Active, tenant.pid()});
  command.send(abi::Output{tenant.pid(), "one\n"});
  command.send(abi::Output{tenant.pid(), "two\n"});
  settle();
  EXPECT_EQ(detectors.output[tenant.pid()], "one\ntwo\n");
  EXPECT_FALSE(command.receive().has_value());
}

TEST_F(AgentTest, AFaultOfANeighbourInTheSameDomainPromotesAndNamesIt) {
  auto [active, standby, page] = pair("llm");
  Peer rogue = peer(), watcher = peer();
  ask(rogue, abi::Adopt{"rogue", abi::Role::Active, rogue.pid()});
  ask(watcher, abi::Subscribe{});
  uvm_event(rogue.pid());
  EXPECT_EQ(word(page).epoch, 0u);
  xid_31(rogue.pid());
  EXPECT_EQ(word(page).epoch, 1u);
  std::vector<abi::Event> faults;
  while (auto received = watcher.receive()) {
    const auto& event = std::get<abi::Event>(received->message);
    if (event.what == abi::EventKind::Fault) faults.push_back(event);
  }
  ASSERT_EQ(faults.size(), 2u);
  EXPECT_EQ(faults[0].tenant, "rogue");
  EXPECT_EQ(faults[0].domain, "a");
  EXPECT_EQ(faults[1].tenant, "") << "an Xid may name anybody";
  EXPECT_EQ(faults[1].domain, "a");
}

TEST_F(AgentTest, AFaultIsToldWithTheTimeOfItsWord) {
  Peer watcher = peer();
  ask(watcher, abi::Subscribe{});
  fault::Fault fault;
  fault.fault_class = fault::FaultClass::MmuReplayable;
  fault.source = fault::FaultSource::Xid;
  clock.advance(Milliseconds(7));
  fault.when = clock.now();
  clock.advance(Milliseconds(7));
  hear(fault);
  settle();
  EXPECT_EQ(std::get<abi::Event>(watcher.receive().value().message).at_ns, to_ns(fault.when));
}

// The fault may be another domain's: its active would go on beside the standby.
TEST_F(AgentTest, AnXidThatNamesAClientPromotesNobodyUnlessTheDomainsFaultIsKnown) {
  auto [active, standby, page] = pair("llm");
  const int looks = domains.looks_for_faults;
  xid(active.pid());
  EXPECT_EQ(word(page).epoch, 0u);
  EXPECT_EQ(link::parse_status(agent->status_json()).tenant("llm")->phase, pair::Phase::Suspecting);
  EXPECT_TRUE(domains.states.empty());
  EXPECT_EQ(domains.looks_for_faults, looks + 1) << "MPS is asked whether it has lost its clients";
  xid(FakeDomains::server_of_a);
  EXPECT_EQ(word(page).epoch, 1u);
}

// UVM's event of it reads as any other, and it ends its own client alone.
TEST_F(AgentTest, ACopyEnginesFaultConfirmsNoXidThatNamesAClient) {
  auto [active, standby, page] = pair("llm");
  Peer rogue = peer();
  ask(rogue, abi::Adopt{"rogue", abi::Role::Active, rogue.pid()});
  uvm_event(rogue.pid());
  xid(active.pid());  // an SM fault of another domain: UVM hears of none
  EXPECT_EQ(word(page).epoch, 0u);
  xid_31_of_copy_engine(rogue.pid());
  xid(active.pid());
  xid_31(active.pid());
  EXPECT_EQ(word(page).epoch, 0u);
  EXPECT_EQ(link::parse_status(agent->status_json()).tenant("llm")->phase, pair::Phase::Suspecting);
  xid(FakeDomains::server_of_a);
  EXPECT_EQ(word(page).epoch, 1u);
}

// The first client's server has come up since anybody asked for servers.
TEST_F(AgentTest, AnXidOfAServerThatNobodyKnowsYetPromotesOnceMpsNamesIt) {
  auto [active, standby, page] = pair("llm");
  Peer server = peer();
  domains.known_servers.clear();
  const int asked = domains.asked_for_servers;
  xid(server.pid());
  EXPECT_EQ(word(page).epoch, 0u);
  EXPECT_EQ(domains.asked_for_servers, asked + 1);
  domains.known_servers[server.pid()] = "a";
  domains.callbacks.on_server("a", server.pid());
  EXPECT_EQ(word(page).epoch, 1u);
}

TEST_F(AgentTest, AnOldXidOfAServerThatBecomesKnownPromotesNobody) {
  auto [active, standby, page] = pair("llm");
  Peer server = peer();
  xid(server.pid());
  clock.advance(std::chrono::seconds(2));
  domains.known_servers[server.pid()] = "a";
  domains.callbacks.on_server("a", server.pid());
  EXPECT_EQ(word(page).epoch, 0u);
}

TEST_F(AgentTest, WordsOfTheKernelLogThatWereMissedAreADangerToAllAndNoFence) {
  auto llm = pair("llm");
  auto other = pair("other");
  Peer watcher = peer();
  ask(watcher, abi::Subscribe{});
  const int looks = domains.looks_for_faults;
  detectors.callbacks.on_gap({.source = fault::FaultSource::Xid, .pid = {}, .text = "overwritten"});
  const auto status = link::parse_status(agent->status_json());
  for (const char* name : {"llm", "other"}) EXPECT_EQ(status.tenant(name)->phase, pair::Phase::Suspecting);
  EXPECT_EQ(word(llm.page).epoch, 0u);
  EXPECT_EQ(word(other.page).epoch, 0u);
  EXPECT_EQ(domains.looks_for_faults, looks + 1);
  const auto told = std::get<abi::Event>(watcher.receive().value().message);
  EXPECT_EQ(told.what, abi::EventKind::Gap);
  EXPECT_EQ(told.source, "kmsg");
  EXPECT_EQ(told.text, "overwritten");
  // MPS says then what was missed.
  domains.callbacks.on_clients_lost("a");
  EXPECT_THAT(detectors.expected, testing::Contains(llm.active.pid()));
}

TEST_F(AgentTest, UvmEventsThatWereMissedAreADangerToTheDomainOfTheirProcess) {
  auto llm = pair("llm");
  Peer rogue = peer();
  ask(rogue, abi::Adopt{"rogue", abi::Role::Standby, rogue.pid()});  // runs in domain b
  watch::Gap gap{.source = fault::FaultSource::UvmEvent, .pid = rogue.pid(), .text = "dropped"};
  detectors.callbacks.on_gap(gap);
  const auto phase = [&] { return link::parse_status(agent->status_json()).tenant("llm")->phase; };
  EXPECT_EQ(phase(), pair::Phase::Serving);
  gap.pid = llm.active.pid();
  gap.danger = false;
  detectors.callbacks.on_gap(gap);
  EXPECT_EQ(phase(), pair::Phase::Serving);
  gap.danger = true;
  detectors.callbacks.on_gap(gap);
  EXPECT_EQ(phase(), pair::Phase::Suspecting);
  EXPECT_EQ(word(llm.page).epoch, 0u);
}

TEST_F(AgentTest, WhatIsNotHeardStandsInTheStatus) {
  EXPECT_THAT(agent->status_json(), testing::Not(HasSubstr("No such device")));
  detectors.missing = {"not heard: kmsg: read: No such device"};
  EXPECT_THAT(agent->status_json(), HasSubstr("not heard: kmsg: read: No such device"));
}

TEST_F(AgentTest, AFaultInTheOtherDomainPromotesNobody) {
  auto [active, standby, page] = pair("llm");
  xid(standby.pid());
  EXPECT_EQ(word(page).epoch, 0u);
}

TEST_F(AgentTest, AStandbyWhoseDomainHadAFaultIsEndedAndNeverPromoted) {
  auto [active, standby, page] = pair("llm");
  Peer rogue = peer();
  ask(rogue, abi::Adopt{"rogue", abi::Role::Standby, rogue.pid()});
  uvm_event(rogue.pid());
  EXPECT_THAT(detectors.expected, testing::Contains(standby.pid())) << "it is ended";
  EXPECT_EQ(link::parse_status(agent->status_json()).tenant("llm")->standby_state, pair::Standby::None);
  detectors.callbacks.on_exit(active.pid());
  EXPECT_EQ(word(page).epoch, 0u);
  EXPECT_EQ(link::parse_status(agent->status_json()).tenant("llm")->phase, pair::Phase::Lost);
}

TEST_F(AgentTest, AStandbyWhoseServerHasEndedIsEndedToo) {
  auto [active, standby, page] = pair("llm");
  domains.callbacks.on_clients_lost("a");
  EXPECT_EQ(link::parse_status(agent->status_json()).tenant("llm")->standby_state, pair::Standby::Ready);
  domains.callbacks.on_clients_lost("b");
  EXPECT_THAT(detectors.expected, testing::Contains(standby.pid())) << "it is ended";
  EXPECT_EQ(link::parse_status(agent->status_json()).tenant("llm")->standby_state, pair::Standby::None);
}

TEST_F(AgentTest, AnActiveWhoseServerHasEndedIsEndedAndThenFollowed) {
  auto [active, standby, page] = pair("llm");
  domains.callbacks.on_clients_lost("a");
  EXPECT_THAT(detectors.expected, testing::Contains(active.pid())) << "it is ended";
  EXPECT_EQ(word(page).epoch, 0u) << "its server's end is no fence";
  detectors.callbacks.on_exit(active.pid());
  EXPECT_EQ(word(page).epoch, 1u);
}

TEST_F(AgentTest, AFaultOfAProcessThatNobodyKnowsPromotesNobody) {
  auto [active, standby, page] = pair("llm");
  xid(4194304);
  EXPECT_EQ(word(page).epoch, 0u);
}

TEST_F(AgentTest, TheActivesEndPromotesWithoutAnyOtherSign) {
  auto [active, standby, page] = pair("llm");
  detectors.callbacks.on_exit(active.pid());
  EXPECT_EQ(word(page).epoch, 1u);
}

// The process is as one that has become another program.
TEST_F(AgentTest, AnActiveThatHungUpAndHasNoGpuIsEnded) {
  auto finished = pair("finished");
  ask(finished.active, abi::Finish{});
  finished.active.hang_up();
  settle();
  auto llm = pair("llm");
  llm.active.hang_up();
  while (detectors.expected.empty()) loop->run_once(Milliseconds(1000));
  EXPECT_THAT(detectors.expected, testing::ElementsAre(llm.active.pid()));
}

// Its first thread has ended, and another one serves.
TEST_F(AgentTest, AnActiveThatHungUpAndHasTheGpuInAnotherThreadServesOn) {
  Peer threaded = peer("threaded");
  join(threaded, "threaded", abi::Role::Active);
  while (os::is_alive(kernel.read_file(os::proc_folder(threaded.pid()) + "/stat").value_or(""))) {
  }
  auto llm = pair("llm");
  threaded.hang_up();
  settle();
  llm.active.hang_up();  // looked at after it
  while (!testing::Value(detectors.expected, testing::Contains(llm.active.pid())))
    loop->run_once(Milliseconds(1000));
  EXPECT_THAT(detectors.expected, testing::ElementsAre(llm.active.pid()));
}

// Its kernels go on with what that program has inherited.
TEST_F(AgentTest, AnActiveThatBecameAnotherProgramWithItsGpuIsEnded) {
  Peer active = peer("bequeathing");
  const os::Mapping page = join(active, "llm", abi::Role::Active);
  active.become_another_program(kernel);
  while (detectors.expected.empty()) loop->run_once(Milliseconds(1000));
  EXPECT_THAT(detectors.expected, testing::ElementsAre(active.pid()));
}

TEST_F(AgentTest, AStandbyThatHungUpIsNotPromoted) {
  auto [active, standby, page] = pair("llm");
  standby.hang_up();
  settle();
  xid(FakeDomains::server_of_a);
  EXPECT_EQ(word(page).epoch, 0u);
}

TEST_F(AgentTest, TheStandbyGetsEveryAllocationOldAndNew) {
  Peer active = peer(), standby = peer();
  join(active, "llm", abi::Role::Active);
  const os::Fd weights = memory(), state = memory();
  EXPECT_TRUE(std::holds_alternative<abi::Done>(
      ask(active, abi::Publish{"weights", 0x500000000000, 2 << 20}, weights.get())));
  join(standby, "llm", abi::Role::Standby);
  auto old_one = standby.receive();
  ask(active, abi::Publish{"state", 0x500000200000, 2 << 20}, state.get());
  auto new_one = standby.receive();
  ASSERT_TRUE(old_one && new_one);
  EXPECT_EQ(std::get<abi::Allocation>(old_one->message).name, "weights");
  EXPECT_EQ(std::get<abi::Allocation>(new_one->message).address, 0x500000200000u);
  EXPECT_EQ(new_one->descriptors.size(), 1u);
}

TEST_F(AgentTest, HeartbeatsOfTheActiveAreWatchedForHangs) {
  auto [active, standby, page] = pair("llm");
  abi::CommitArea& area = page.as<abi::SharedPage>()->areas[0];
  const auto progress = detectors.progress.at(active.pid());
  area.term = 1;
  area.queued_step = 1;
  EXPECT_EQ(progress(), std::nullopt);  // a long step, and nothing else is known
  area.heartbeats_queued = 2;
  area.heartbeats_done = 1;
  EXPECT_EQ(progress(), 1u);
  area.next_step = 1;
  area.heartbeats_done = 2;
  EXPECT_EQ(progress(), std::nullopt);

  xid(FakeDomains::server_of_a);
  ask(standby, abi::Resumed{1});
  EXPECT_THAT(detectors.expected, testing::IsEmpty());  // the active may stand down yet
  while (detectors.expected.empty()) loop->run_once(Milliseconds(1000));
  EXPECT_THAT(detectors.expected, testing::ElementsAre(active.pid()));
  area.heartbeats_queued = 3;
  EXPECT_EQ(progress(), std::nullopt);  // the process is no active any more
  page.as<abi::SharedPage>()->areas[1].term = 2;
  page.as<abi::SharedPage>()->areas[1].heartbeats_queued = 5;
  EXPECT_EQ(detectors.progress.at(standby.pid())(), 0u);
}

TEST_F(AgentTest, WhoNeverSaysThatItRunsDoesSoWithItsFirstStep) {
  auto [active, standby, page] = pair("llm");
  const auto phase = [this] { return link::parse_status(agent->status_json()).tenant("llm")->phase; };
  Peer watcher = peer();
  ask(watcher, abi::Subscribe{});
  xid(FakeDomains::server_of_a);
  abi::CommitArea& area = page.as<abi::SharedPage>()->areas[2];
  area.first_step = area.next_step = 7;
  area.term = 2;  // the process is in office
  while (detectors.expected.empty()) loop->run_once(Milliseconds(1000));
  EXPECT_THAT(detectors.expected, testing::ElementsAre(active.pid())) << "however long its successor takes";
  EXPECT_EQ(phase(), pair::Phase::Promoting);
  EXPECT_THAT(agent->status_json(), HasSubstr("the promoted process has not begun its work yet"));
  settle();
  std::vector<std::int64_t> waited_for;
  while (auto received = watcher.receive()) {
    const auto* event = std::get_if<abi::Event>(&received->message);
    if (event != nullptr && event->what == abi::EventKind::Waiting) waited_for.push_back(event->pid);
  }
  EXPECT_THAT(waited_for, testing::ElementsAre(standby.pid())) << "an operator is told of whom";
  area.next_step = 8;
  while (phase() == pair::Phase::Promoting) loop->run_once(Milliseconds(1000));
  EXPECT_EQ(phase(), pair::Phase::Serving);
  EXPECT_THAT(agent->status_json(), HasSubstr("\"waiting_for\": \"\""));
  EXPECT_TRUE(detectors.progress.contains(standby.pid()));
}

TEST_F(AgentTest, FinishingDismissesTheStandby) {
  auto [active, standby, page] = pair("llm");
  ask(active, abi::Finish{});
  EXPECT_TRUE(word(page).finished);
  detectors.callbacks.on_exit(active.pid());
  EXPECT_EQ(word(page).epoch, 0u);
}

TEST_F(AgentTest, ATenantIsForgottenWithItsLastProcess) {
  Peer active = peer();
  join(active, "llm", abi::Role::Active);
  EXPECT_THAT(agent->status_json(), HasSubstr("llm"));
  detectors.callbacks.on_exit(active.pid());
  EXPECT_THAT(agent->status_json(), testing::Not(HasSubstr("llm")));
}

TEST_F(AgentTest, RefusesWhatDoesNotFit) {
  Peer one = peer(), two = peer();
  join(one, "llm", abi::Role::Active);
  EXPECT_THAT(refusal(two, abi::Join{"llm", abi::Role::Active}), HasSubstr("already has an active"));
  EXPECT_THAT(refusal(two, abi::Join{"a b", abi::Role::Active}), HasSubstr("letters, digits"));
  EXPECT_THAT(refusal(two, abi::Ready{}), HasSubstr("role"));
  EXPECT_THAT(refusal(two, abi::Publish{"x", 0x500000000000, 2 << 20}), HasSubstr("role"));
  EXPECT_THAT(refusal(one, abi::Publish{"x", 0x500000000000, 2 << 20}), HasSubstr("one descriptor"));
  EXPECT_THAT(refusal(one, abi::Done{}), HasSubstr("agent's to say"));
}

TEST_F(AgentTest, NonsenseEndsTheConnectionAndNotTheAgent) {
  Peer next = peer();
  for (const std::string text : {"{", "[]", "{\"type\":\"join\"}"}) {
    auto raw = os::connect(path, Milliseconds(1000));
    ASSERT_TRUE(raw->send(std::as_bytes(std::span(text)), {}, Milliseconds(1000)).has_value());
    settle();
    auto answer = raw->receive(Milliseconds(1000));
    ASSERT_TRUE(answer.has_value());
    EXPECT_FALSE(raw->receive(Milliseconds(1000)).has_value());
  }
  join(next, "llm", abi::Role::Active);
}

TEST_F(AgentTest, AFaultOnPurposeIsTheTenantsToTakeOrRefuse) {
  Peer active = peer(), operator_ = peer(), watcher = peer();
  join(active, "llm", abi::Role::Active);
  ask(watcher, abi::Subscribe{});
  operator_.send(abi::Inject{"llm", "trap", 3});
  settle();
  EXPECT_FALSE(operator_.receive().has_value());
  const auto forwarded = std::get<abi::Inject>(active.receive().value().message);
  EXPECT_EQ(forwarded.kind, "trap");
  EXPECT_EQ(forwarded.commits, 3u);
  active.send(abi::Injected{17, ""});
  settle();
  EXPECT_EQ(std::get<abi::Injected>(operator_.receive().value().message).raised_at_ns, 17);
  const auto event = std::get<abi::Event>(watcher.receive().value().message);
  EXPECT_EQ(event.what, abi::EventKind::Injected);
  EXPECT_EQ(event.tenant, "llm");
  EXPECT_EQ(event.pid, active.pid());
  EXPECT_EQ(event.at_ns, 17);
  EXPECT_EQ(event.text, "trap");

  operator_.send(abi::Inject{"llm", "trap", 1});
  settle();
  active.send(abi::Injected{0, "not today"});
  settle();
  EXPECT_EQ(std::get<abi::Refused>(operator_.receive().value().message).reason, "not today");
  EXPECT_FALSE(watcher.receive().has_value());
}

TEST_F(AgentTest, AFaultOnPurposeNeedsATenantThatIsThereAndFree) {
  Peer active = peer(), operator_ = peer(), other = peer();
  EXPECT_THAT(refusal(operator_, abi::Inject{"llm", "trap", 1}), HasSubstr("no tenant 'llm'"));
  join(active, "llm", abi::Role::Active);
  operator_.send(abi::Inject{"llm", "trap", 1});
  settle();
  EXPECT_THAT(refusal(other, abi::Inject{"llm", "trap", 1}), HasSubstr("already waits"));
  active.hang_up();
  settle();
  EXPECT_EQ(std::get<abi::Refused>(operator_.receive().value().message).reason, "the tenant ended first");
}

TEST_F(AgentTest, AnAnswerToAFaultThatNobodyAskedForIsNothing) {
  Peer active = peer(), watcher = peer();
  join(active, "llm", abi::Role::Active);
  ask(watcher, abi::Subscribe{});
  active.send(abi::Injected{17, ""});
  settle();
  EXPECT_FALSE(watcher.receive().has_value());
  EXPECT_FALSE(active.receive().has_value());
}

TEST_F(AgentTest, ASocketThatWasRemovedIsThereAgain) {
  Peer before = peer();
  ASSERT_EQ(std::remove(path.c_str()), 0);
  while (!std::filesystem::exists(path)) loop->run_once(std::nullopt);
  Peer after = peer();
  join(after, "llm", abi::Role::Active);
  join(before, "other", abi::Role::Active);
}

}  // namespace
}  // namespace firebreak::agent
