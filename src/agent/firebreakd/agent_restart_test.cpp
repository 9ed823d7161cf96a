// SPDX-License-Identifier: Apache-2.0
/// The agent is killed, and the next one goes on with what was kept.
#include <signal.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "ground/base/units.h"
#include "shared/link/status_view.h"
#include "tests/doubles/agent/agent_test_support.h"
#include "tests/doubles/os/closer_test_support.h"

namespace firebreak::agent {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::uint64_t base = 0x500000000000;

class AgentRestart : public AgentTest {
 protected:
  /// Nothing of the old one is asked, as when it is killed.
  void restart(Milliseconds lease = AgentOptions{}.lease) {
    agent.reset();
    AgentOptions options;
    options.lease = lease;
    options.socket_path = path;
    agent = start_agent(options);
    settle();  // the shelves have said what they have
  }
  abi::Placed place(Peer& command, const std::string& tenant) {
    return std::get<abi::Placed>(ask(command, abi::Place{tenant, abi::Role::Active, "", 25, 1024}));
  }
  /// Asks on a new connection.
  bool is_adopted(Peer& command, Peer& process, const std::string& tenant) {
    command.reconnect();
    settle();
    return std::holds_alternative<abi::Done>(
        ask(command, abi::Adopt{tenant, abi::Role::Active, process.pid(), {}}));
  }
  nlohmann::json active_of(const std::string& tenant) {
    const auto status = nlohmann::json::parse(agent->status_json());
    for (const auto& each : status["tenants"]) {
      if (each["name"] == tenant) return each["active"];
    }
    return nullptr;
  }
  void publish(Peer& peer, const std::string& name, std::uint64_t address) {
    const os::Fd descriptor = memory();
    EXPECT_TRUE(
        std::holds_alternative<abi::Done>(ask(peer, abi::Publish{name, address, 2 * mib}, descriptor.get())));
  }
  /// The same process, on a new connection.
  abi::Message rejoin(Peer& peer) {
    peer.reconnect();
    settle();
    return ask(peer, abi::Rejoin{"llm"});
  }
};

TEST_F(AgentRestart, TheNextAgentPromotesWhomTheOneBeforeHadMadeReady) {
  Peer active = peer(), standby = peer();
  const os::Mapping page = join(active, "llm", abi::Role::Active);
  publish(active, "state", base);
  join(standby, "llm", abi::Role::Standby);
  while (standby.receive()) {
  }
  ask(standby, abi::Ready{});
  restart();
  EXPECT_THAT(agent->status_json(), HasSubstr("\"standby_state\": \"ready\""));
  EXPECT_THAT(agent->status_json(), HasSubstr("\"memory_bytes\": 2097152"));
  xid(FakeDomains::server_of_a);  // the fault comes before anybody has come back
  EXPECT_EQ(word(page).epoch, 1u);
  EXPECT_TRUE(std::holds_alternative<abi::Done>(rejoin(standby)));
  // The agent may not have heard of this yet.
  EXPECT_TRUE(std::holds_alternative<abi::Allocation>(standby.receive()->message));
  EXPECT_TRUE(std::holds_alternative<abi::Done>(ask(standby, abi::Resumed{0})));
}

TEST_F(AgentRestart, WhatWasCountedIsCountedOn) {
  auto [active, standby, page] = pair("llm");
  xid(FakeDomains::server_of_a);
  ASSERT_EQ(word(page).epoch, 1u);
  fault::Incident incident;
  incident.fault_class = fault::FaultClass::Sm;
  incident.domain = "a";
  incident.closed = true;
  detectors.callbacks.on_incident(incident);
  restart();
  const auto counts = nlohmann::json::parse(agent->status_json())["counts"];
  EXPECT_EQ(counts["agent_starts"], 2);
  EXPECT_EQ(counts["promotions"]["xid"], 1);
  EXPECT_EQ(counts["faults"]["sm"]["failed_over"], 1) << counts.dump();
}

TEST_F(AgentRestart, WhoEndedMeanwhileIsNoticed) {
  auto [active, standby, page] = pair("llm");
  agent.reset();
  active.end(kernel);
  restart();
  EXPECT_EQ(word(page).epoch, 1u);
}

// The process has ended, and another one has its number: the last moment for that is just before it is
// opened.
TEST_F(AgentRestart, WhoHasTheNumberOfOneThatHasEndedIsNotTakenForIt) {
  auto [active, standby, page] = pair("llm");
  agent.reset();
  const std::string file = os::proc_folder(active.pid()) + "/stat";
  kernel.before_pidfd = [&](pid_t pid) {
    if (pid != active.pid()) return;
    std::string stat = kernel.read_file(file).value();
    const std::string started = " " + std::string(os::start_time(stat));
    kernel.files[file] = stat.replace(stat.rfind(started), started.size(), started + "0");
  };
  restart();
  kernel.before_pidfd = nullptr;
  EXPECT_EQ(active_of("llm")["pid"], standby.pid());
  EXPECT_EQ(word(page).epoch, 1u);
}

TEST_F(AgentRestart, AStandbyThatBecameAnotherProgramMeanwhileIsNone) {
  auto [active, standby, page] = pair("llm");
  agent.reset();
  standby.become_another_program(kernel);
  restart();
  EXPECT_EQ(link::parse_status(agent->status_json()).tenant("llm")->standby_state, pair::Standby::None);
  detectors.callbacks.on_exit(active.pid());
  EXPECT_EQ(word(page).epoch, 0u);
  ASSERT_TRUE(kernel.send_signal(kernel.pidfd_open(standby.pid()).value(), SIGKILL));
}

TEST_F(AgentRestart, AStandbyWhoseServerEndedMeanwhileIsNotPromoted) {
  auto [active, standby, page] = pair("llm");
  Peer server = peer();  // process of any kind
  domains.callbacks.on_server("b", server.pid());
  restart();
  EXPECT_EQ(link::parse_status(agent->status_json()).tenant("llm")->standby_state, pair::Standby::Ready);
  agent.reset();
  server.end(kernel);
  active.end(kernel);
  restart();
  EXPECT_THAT(detectors.expected, testing::Contains(standby.pid())) << "it is ended";
  EXPECT_EQ(word(page).epoch, 0u);
  EXPECT_EQ(link::parse_status(agent->status_json()).tenant("llm")->phase, pair::Phase::Lost);
}

TEST_F(AgentRestart, AnActiveWhoseServerEndedMeanwhileIsTakenOver) {
  auto [active, standby, page] = pair("llm");
  Peer server = peer();
  domains.callbacks.on_server("a", server.pid());
  agent.reset();
  server.end(kernel);
  restart();
  EXPECT_THAT(detectors.expected, testing::Contains(active.pid())) << "it is ended";
  detectors.callbacks.on_exit(active.pid());
  EXPECT_EQ(word(page).epoch, 1u);
}

TEST_F(AgentRestart, AServerWhoseEndWasSeenIsNotMissedAgain) {
  auto [active, standby, page] = pair("llm");
  Peer server = peer();
  domains.callbacks.on_server("b", server.pid());
  server.end(kernel);
  domains.callbacks.on_clients_lost("b");
  detectors.callbacks.on_exit(standby.pid());
  Peer next = peer();
  join(next, "llm", abi::Role::Standby);
  while (next.receive()) {
  }
  ask(next, abi::Ready{});
  restart();
  EXPECT_EQ(link::parse_status(agent->status_json()).tenant("llm")->standby_state, pair::Standby::Ready);
}

TEST_F(AgentRestart, AServerThatWasReplacedIsNotMissed) {
  Peer server = peer(), next = peer();
  domains.callbacks.on_server("b", server.pid());
  server.end(kernel);
  domains.callbacks.on_server("b", next.pid());
  auto [active, standby, page] = pair("llm");
  restart();
  EXPECT_EQ(link::parse_status(agent->status_json()).tenant("llm")->standby_state, pair::Standby::Ready);
}

TEST_F(AgentRestart, AFaultOfMeanwhileIsAskedForOnceItsDetectorsListen) {
  restart();
  const int looks = domains.looks_for_faults;
  restart();
  EXPECT_EQ(domains.looks_for_faults, looks + 1);
}

TEST_F(AgentRestart, WhoLeftInGoodOrderMeanwhileIsNotTakenOver) {
  auto [active, standby, page] = pair("llm");
  agent.reset();
  page.as<abi::SharedPage>()->areas[0].left = 1;
  active.end(kernel);
  restart();
  EXPECT_EQ(word(page).epoch, 0u);
  EXPECT_TRUE(word(page).finished);
  EXPECT_EQ(link::parse_status(agent->status_json()).tenant("llm")->phase, pair::Phase::Finished);
}

TEST_F(AgentRestart, WhoLeftInAnEarlierEpochHasNotLeft) {
  auto [active, standby, page] = pair("llm");
  page.as<abi::SharedPage>()->areas[0].left = 4;
  agent.reset();
  active.end(kernel);
  restart();
  EXPECT_EQ(word(page).epoch, 1u);
  EXPECT_FALSE(word(page).finished);
}

TEST_F(AgentRestart, APromotionThatWasNotWrittenDownAnyMoreStands) {
  auto [active, standby, page] = pair("llm");
  const auto promoted = abi::Promoted{1, static_cast<std::uint32_t>(standby.pid())};
  page.as<abi::SharedPage>()->promoted = promoted.raw();
  page.as<abi::SharedPage>()->promotion = abi::PromotionWord{1, false}.raw();
  restart();
  EXPECT_EQ(word(page).epoch, 1u);
  EXPECT_THAT(agent->status_json(), HasSubstr("\"phase\": \"promoting\""));
  EXPECT_TRUE(std::holds_alternative<abi::Done>(rejoin(standby)));
  EXPECT_TRUE(std::holds_alternative<abi::Done>(ask(standby, abi::Resumed{0})));
  EXPECT_THAT(agent->status_json(), HasSubstr("\"phase\": \"serving\""));
}

TEST_F(AgentRestart, AStandbyWhoseConnectionBrokeStandsByAgain) {
  auto [active, standby, page] = pair("llm");
  standby.hang_up();
  settle();
  EXPECT_EQ(link::parse_status(agent->status_json()).tenant("llm")->standby_state, pair::Standby::None);
  standby.reconnect();
  settle();
  EXPECT_TRUE(std::holds_alternative<abi::Done>(ask(standby, abi::Rejoin{"llm", "", true})));
  EXPECT_EQ(link::parse_status(agent->status_json()).tenant("llm")->standby_state, pair::Standby::Ready);
  detectors.callbacks.on_exit(active.pid());
  EXPECT_EQ(word(page).epoch, 1u);
  const auto promoted = abi::Promoted::from(page.as<abi::SharedPage>()->promoted.load());
  EXPECT_EQ(promoted, (abi::Promoted{1, static_cast<std::uint32_t>(standby.pid())}));
}

class AgentRestartWithoutReturn : public AgentRestart {
 protected:
  void restart() {
    agent.reset();
    AgentOptions options;
    options.stands_by_without = Milliseconds(20);
    options.comes_back_within = Milliseconds(40);
    options.socket_path = path;
    agent = start_agent(options);
    settle();
  }
  auto llm() { return *link::parse_status(agent->status_json()).tenant("llm"); }
};

TEST_F(AgentRestartWithoutReturn, AStandbyThatDoesNotComeBackIsNoneAndEnded) {
  auto [active, standby, page] = pair("llm");
  restart();
  while (llm().standby_state != pair::Standby::None) loop->run_once(Milliseconds(1000));
  detectors.callbacks.on_exit(active.pid());
  EXPECT_EQ(word(page).epoch, 0u) << "nobody is there to be promoted";
  EXPECT_EQ(llm().phase, pair::Phase::Lost);
  while (detectors.expected.empty()) loop->run_once(Milliseconds(1000));
  EXPECT_THAT(detectors.expected, testing::ElementsAre(standby.pid()));
}

TEST_F(AgentRestartWithoutReturn, OneThatComesBackLateStandsByAgain) {
  auto [active, standby, page] = pair("llm");
  restart();
  while (llm().standby_state != pair::Standby::None) loop->run_once(Milliseconds(1000));
  standby.reconnect();
  EXPECT_TRUE(std::holds_alternative<abi::Done>(ask(standby, abi::Rejoin{"llm", "", true})));
  EXPECT_EQ(llm().standby_state, pair::Standby::Ready);
}

// The shared page wakes it, if it is there.
TEST_F(AgentRestartWithoutReturn, OneThatIsPromotedAndNeitherBeginsNorComesBackIsEnded) {
  auto [active, standby, page] = pair("llm");
  restart();
  detectors.callbacks.on_exit(active.pid());
  EXPECT_EQ(word(page).epoch, 1u);
  while (detectors.expected.empty()) loop->run_once(Milliseconds(1000));
  EXPECT_THAT(detectors.expected, testing::ElementsAre(standby.pid()));
  detectors.callbacks.on_exit(standby.pid());
  EXPECT_FALSE(link::parse_status(agent->status_json()).tenant("llm")) << "somebody may begin anew";
}

TEST_F(AgentRestartWithoutReturn, NorOneThatTheAgentBeforeHadPromoted) {
  auto [active, standby, page] = pair("llm");
  xid(FakeDomains::server_of_a);
  EXPECT_EQ(llm().phase, pair::Phase::Promoting);
  active.end(kernel);
  restart();
  while (detectors.expected.empty()) loop->run_once(Milliseconds(1000));
  EXPECT_THAT(detectors.expected, testing::Contains(standby.pid()));
}

TEST_F(AgentRestart, OneThatWasStillStartingIsNotReadyWhenItComesBack) {
  auto [active, standby, page] = pair("llm");
  standby.hang_up();
  settle();
  EXPECT_TRUE(std::holds_alternative<abi::Done>(rejoin(standby)));
  EXPECT_EQ(link::parse_status(agent->status_json()).tenant("llm")->standby_state, pair::Standby::Joined);
}

// The agent stood still: what it reads first is what a connection said that has been given up since.
TEST_F(AgentRestart, OfOneThatCameBackTwiceTheLastConnectionCounts) {
  auto [active, standby, page] = pair("llm");
  restart();
  standby.reconnect();
  standby.send(abi::Rejoin{"llm", "", true});
  standby.reconnect();
  standby.send(abi::Rejoin{"llm", "", true});
  settle();
  std::optional<Peer::Received> answer = standby.receive();
  ASSERT_TRUE(answer && std::holds_alternative<abi::Done>(answer->message));
  EXPECT_EQ(link::parse_status(agent->status_json()).tenant("llm")->standby_state, pair::Standby::Ready);
  // The older connection may still be there.
  Peer::Received again{ask(standby, abi::Rejoin{"llm", "", true}), {}};
  EXPECT_TRUE(std::holds_alternative<abi::Done>(again.message));
}

TEST_F(AgentRestart, AStandbyThatComesBackAfterItsTenantWasLostIsTold) {
  auto [active, standby, page] = pair("llm");
  standby.hang_up();
  settle();
  detectors.callbacks.on_exit(active.pid());
  standby.reconnect();
  settle();
  EXPECT_THAT(refusal(standby, abi::Rejoin{"llm", "", true}), HasSubstr("tenant 'llm' is lost"));
  Peer next = peer();
  const os::Mapping same = join(next, "llm", abi::Role::Active);
  EXPECT_EQ(word(same).epoch, 1u);
  EXPECT_EQ(same.as<abi::SharedPage>()->promoted.load(), 0u) << "nobody waits for this epoch";
}

// The answer was lost with the agent before.
TEST_F(AgentRestart, AHandOverThatWasCarriedOutIsNotCarriedOutAgain) {
  auto [active, standby, page] = pair("llm");
  auto& its = page.as<abi::SharedPage>()->hand_over;
  its = abi::HandOverWord{0, 3, abi::HandOverWord::State::Offered}.raw();
  active.send(abi::StandDown{3}, -1, 9);
  settle();
  EXPECT_EQ(word(page).epoch, 1u);
  restart();
  EXPECT_TRUE(std::holds_alternative<abi::Done>(rejoin(active)));
  for (const std::uint64_t number : {9u, 10u}) {  // asked by the link, and by its caller
    active.send(abi::StandDown{3}, -1, number);
    settle();
    const auto answer = active.receive();
    ASSERT_TRUE(answer && std::holds_alternative<abi::Done>(answer->message));
    EXPECT_EQ(answer->number, number);
    EXPECT_EQ(word(page).epoch, 1u);
    EXPECT_EQ(link::parse_status(agent->status_json()).tenant("llm")->standby, active.pid());
  }
}

TEST_F(AgentRestart, AHandOverIsGoneOnWithWhereTheWordWasTakenAndNobodyPromoted) {
  auto [active, standby, page] = pair("llm");
  auto& its = page.as<abi::SharedPage>()->hand_over;
  its = abi::HandOverWord{0, 3, abi::HandOverWord::State::Taken}.raw();
  restart();
  EXPECT_TRUE(std::holds_alternative<abi::Done>(rejoin(active)));
  EXPECT_TRUE(std::holds_alternative<abi::Done>(ask(active, abi::StandDown{3})));
  EXPECT_EQ(word(page).epoch, 1u);
}

TEST_F(AgentRestart, AWordThatWasTakenBackIsNone) {
  auto [active, standby, page] = pair("llm");
  auto& its = page.as<abi::SharedPage>()->hand_over;
  for (const abi::HandOverWord there :
       {abi::HandOverWord{0, 3, abi::HandOverWord::State::Withdrawn},
        abi::HandOverWord{0, 4, abi::HandOverWord::State::Offered},
        abi::HandOverWord{2, 3, abi::HandOverWord::State::Offered}, abi::HandOverWord{}}) {
    its = there.raw();
    EXPECT_THAT(refusal(active, abi::StandDown{3}), HasSubstr("taken its word back"));
    EXPECT_EQ(word(page).epoch, 0u);
  }
}

TEST_F(AgentRestart, WhatIsAskedAgainUnderTheSameNumberIsToldOnce) {
  auto [active, standby, page] = pair("llm");
  xid(FakeDomains::server_of_a);
  standby.send(abi::Resumed{5}, -1, 7);
  settle();
  ASSERT_TRUE(standby.receive());
  restart();
  Peer watcher = peer();
  ask(watcher, abi::Subscribe{});
  EXPECT_TRUE(std::holds_alternative<abi::Done>(rejoin(standby)));
  standby.send(abi::Resumed{5}, -1, 7);
  settle();
  EXPECT_TRUE(std::holds_alternative<abi::Done>(standby.receive()->message));
  EXPECT_FALSE(watcher.receive());
  standby.send(abi::Resumed{5}, -1, 8);
  settle();
  EXPECT_EQ(std::get<abi::Event>(watcher.receive()->message).what, abi::EventKind::Resumed);
}

TEST_F(AgentRestart, MemoryOfALostTenantIsStillThere) {
  Peer active = peer(), second = peer();
  join(active, "llm", abi::Role::Active);
  publish(active, "state", base);
  detectors.callbacks.on_exit(active.pid());
  restart();
  second.reconnect();
  settle();
  Peer watcher = peer();
  ask(watcher, abi::Subscribe{});
  second.send(abi::Join{"llm", abi::Role::Active});
  settle();
  auto joined = second.receive();
  ASSERT_TRUE(joined && std::holds_alternative<abi::Joined>(joined->message));
  EXPECT_EQ(std::get<abi::Joined>(joined->message).allocations, 1u);
  std::vector<std::uint32_t> begun;
  while (auto received = watcher.receive()) {
    const auto* event = std::get_if<abi::Event>(&received->message);
    if (event != nullptr && event->what == abi::EventKind::BegunAnew) begun.push_back(event->epoch);
  }
  EXPECT_THAT(begun, testing::ElementsAre(1u)) << "it begins an epoch, and operators are told which";
}

TEST_F(AgentRestart, TheLeaseOfALostTenantEndsUnderTheNextAgent) {
  Peer active = peer(), other = peer();
  join(active, "llm", abi::Role::Active);
  publish(active, "state", base);
  join(other, "other", abi::Role::Active);
  detectors.callbacks.on_exit(active.pid());
  restart(Milliseconds(1));
  while (agent->status_json().find("llm") != std::string::npos) loop->run_once(Milliseconds(1000));
  settle();
  EXPECT_THAT(manager.kept, testing::SizeIs(3));  // the document, and the other's with its page
}

TEST_F(AgentRestart, NothingIsKeptOfWhoIsForgotten) {
  Peer active = peer();
  join(active, "llm", abi::Role::Active);
  publish(active, "state", base);
  EXPECT_THAT(manager.kept, testing::SizeIs(4));  // two documents, the page, the shelf with the memory
  ask(active, abi::Finish{});
  detectors.callbacks.on_exit(active.pid());
  settle();
  EXPECT_THAT(manager.kept, testing::ElementsAre(testing::Key(document_name())));
  restart();
  EXPECT_THAT(agent->status_json(), Not(HasSubstr("llm")));
}

// A soak found the shelf of a tenant that was gone: its agent was killed before the shelf had heard of that.
TEST_F(AgentRestart, WhoIsForgottenJustBeforeTheAgentEndsHasNothingOnAShelf) {
  Peer active = peer();
  join(active, "llm", abi::Role::Active);
  const std::vector<pid_t> others = os::children_of(kernel, ::getpid());
  publish(active, "state", base);
  std::vector<pid_t> shelves = os::children_of(kernel, ::getpid());
  std::erase_if(shelves, [&](pid_t pid) { return std::ranges::count(others, pid) != 0; });
  ASSERT_THAT(shelves, testing::SizeIs(1));
  ask(active, abi::Finish{});
  ::kill(shelves.front(), SIGSTOP);
  detectors.callbacks.on_exit(active.pid());
  while (agent->status_json().find("llm") != std::string::npos) loop->run_once(Milliseconds(10));
  EXPECT_TRUE(agent->awaits_shelves());
  agent.reset();
  ::kill(shelves.front(), SIGCONT);
  restart();
  EXPECT_THAT(manager.kept, testing::ElementsAre(testing::Key(document_name())));
}

TEST_F(AgentRestart, MemoryCostsTheAgentNoDescriptor) {
  Peer active = peer();
  join(active, "llm", abi::Role::Active);
  publish(active, "first", base);  // the shelf is there when the first memory comes
  os::await_closers();
  const auto before = kernel.list_directory("/proc/self/fd").value().size();
  for (std::uint64_t i = 1; i <= 20; ++i) publish(active, std::to_string(i), base + i * 2 * mib);
  os::await_closers();
  EXPECT_EQ(kernel.list_directory("/proc/self/fd").value().size(), before);
  restart();
  Peer standby = peer();
  join(standby, "llm", abi::Role::Standby);
  for (int i = 0; i <= 20; ++i) {
    const auto received = standby.receive();
    ASSERT_TRUE(received && std::holds_alternative<abi::Allocation>(received->message)) << i;
    ASSERT_EQ(received->descriptors.size(), 1u);
    EXPECT_EQ(os::file_size(received->descriptors.front().get()).value(), 4096u);
  }
}

TEST_F(AgentRestart, WhatItsShelfHadEndsWithTheShelfAndIsTold) {
  Peer active = peer();
  join(active, "llm", abi::Role::Active);
  publish(active, "state", base);
  manager.kept.erase(shelf_name(0));
  restart();
  const auto llm = link::parse_status(agent->status_json()).tenant("llm");
  ASSERT_TRUE(llm);
  EXPECT_THAT(agent->status_json(), HasSubstr("\"allocations\": 0"));
}

// Whatever it would be told by now, and whatever its own environment says.
TEST_F(AgentRestart, WhoWasToldWhereToRunByTheAgentBeforeIsTakenToBeThere) {
  Peer command = peer(), process = peer();
  domains.states = {{"a", mps::DomainState::Draining}};
  const abi::Placed placed = place(command, "llm");
  EXPECT_GT(placed.agent_returns_ms, 0u);
  domains.states.clear();
  restart();
  EXPECT_TRUE(is_adopted(command, process, "llm"));
  EXPECT_EQ(active_of("llm")["domain"], "b");
  EXPECT_EQ(active_of("llm")["sm_percent"], 25);
  EXPECT_EQ(active_of("llm")["memory_mib"], 1024);
  // The token that it was given makes it known.
  const auto token =
      std::ranges::find(placed.environment, "FIREBREAK_TOKEN", &std::pair<std::string, std::string>::first);
  ASSERT_NE(token, placed.environment.end());
  process.reconnect();
  settle();
  EXPECT_THAT(refusal(process, abi::Join{"llm", abi::Role::Active, "another"}), HasSubstr("token"));
  EXPECT_TRUE(
      std::holds_alternative<abi::Joined>(ask(process, abi::Join{"llm", abi::Role::Active, token->second})));
}

TEST_F(AgentRestart, WhoWasAdoptedBeforeTheAnswerWasLostIsAdoptedOnce) {
  Peer command = peer(), process = peer();
  place(command, "llm");
  command.send(abi::Adopt{"llm", abi::Role::Active, process.pid(), {}});
  settle();
  restart();
  domains.states = {{"a", mps::DomainState::Draining}};
  EXPECT_TRUE(is_adopted(command, process, "llm"));
  EXPECT_EQ(active_of("llm")["domain"], "a");
}

TEST_F(AgentRestart, APlaceThatTheAgentBeforeGaveHoldsForAWhile) {
  Peer command = peer(), process = peer();
  domains.states = {{"a", mps::DomainState::Draining}};
  place(command, "llm");
  domains.states.clear();
  agent.reset();
  AgentOptions options;
  options.socket_path = path;
  options.returns_within = Milliseconds(0);
  agent = start_agent(options);
  bool is_over = false;  // later events come after it
  const auto later = loop->after(Milliseconds(1), [&is_over] { is_over = true; });
  while (!is_over) loop->run_once(Milliseconds(1000));
  EXPECT_TRUE(is_adopted(command, process, "llm"));
  EXPECT_EQ(active_of("llm")["domain"], "a");
}

TEST_F(AgentRestart, StrangersDoNotComeBack) {
  Peer active = peer(), stranger = peer();
  join(active, "llm", abi::Role::Active);
  restart();
  EXPECT_TRUE(std::holds_alternative<abi::Refused>(rejoin(stranger)));
  EXPECT_TRUE(std::holds_alternative<abi::Done>(rejoin(active)));
  EXPECT_THAT(refusal(stranger, abi::Rejoin{"llm"}), HasSubstr("is none of tenant"));
}

TEST_F(AgentRestart, WithoutAServiceManagerItBeginsWithNothing) {
  manager.is_there = false;
  manager.kept.clear();
  restart();
  Peer active = peer();
  join(active, "llm", abi::Role::Active);
  EXPECT_THAT(manager.kept, IsEmpty());
}

TEST_F(AgentRestart, ADocumentThatIsNoneIsNoReasonNotToStart) {
  manager.kept.insert_or_assign(document_name(), memory());
  manager.kept.insert_or_assign(tenant_document_name("ghost"), memory());
  manager.kept.insert_or_assign("page/ghost", memory());
  restart();
  EXPECT_THAT(agent->status_json(), Not(HasSubstr("ghost")));
  Peer active = peer();
  join(active, "llm", abi::Role::Active);
}

// The join was written down before it was answered, and the answer was lost with its agent.
TEST_F(AgentRestart, AJoinThatIsAskedAgainIsTheSameOne) {
  Peer active = peer(), standby = peer();
  for (Peer* process : {&active, &standby}) {
    const abi::Role role = process == &active ? abi::Role::Active : abi::Role::Standby;
    process->reconnect();
    settle();
    const auto before = std::get<abi::Joined>(ask(*process, abi::Join{"llm", role, "", "first"}));
    restart();
    process->reconnect();
    settle();
    EXPECT_THAT(refusal(*process, abi::Join{"llm", role, "", "second"}), HasSubstr("already has"));
    const auto again = std::get<abi::Joined>(ask(*process, abi::Join{"llm", role, "", "first"}));
    EXPECT_EQ(again.member, before.member);
    EXPECT_EQ(again.epoch, before.epoch);
  }
  const auto now = link::parse_status(agent->status_json()).tenant("llm");
  EXPECT_EQ(now->phase, pair::Phase::Serving);
  EXPECT_EQ(now->standby_state, pair::Standby::Joined);
}

}  // namespace
}  // namespace firebreak::agent
