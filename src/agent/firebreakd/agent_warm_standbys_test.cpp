// SPDX-License-Identifier: Apache-2.0
/// Standbys that have warmed up before MPS has named their server.
#include "shared/link/status_view.h"
#include "tests/doubles/agent/agent_test_support.h"

namespace firebreak::agent {
namespace {

using testing::HasSubstr;

class WarmStandbys : public AgentTest {
 protected:
  static constexpr std::uint64_t number = 7;

  void restart(Milliseconds patience = AgentOptions{}.server_patience) {
    agent.reset();
    AgentOptions options;
    options.socket_path = path;
    options.server_patience = patience;
    agent = start_agent(options);
  }
  /// One whose standby has said that it is ready.
  void start_pair() {
    domains.has_servers = false;
    page = join(active, "llm", abi::Role::Active);
    join(standby, "llm", abi::Role::Standby);
    say_ready();
  }
  void say_ready() {
    standby.send(abi::Ready{}, -1, number);
    settle();
  }
  std::optional<pair::Standby> standby_state() {
    return link::parse_status(agent->status_json()).tenant("llm")->standby_state;
  }
  bool is_answered() {
    const auto answer = standby.receive();
    return answer && answer->number == number && std::holds_alternative<abi::Done>(answer->message);
  }
  void come_back(bool ready) {
    standby.reconnect();
    settle();
    standby.send(abi::Rejoin{"llm", "", ready}, -1, number + 1);
    settle();
    EXPECT_TRUE(standby.receive());
  }

  Peer active = peer(), standby = peer(), server = peer();
  os::Mapping page;
};

TEST_F(WarmStandbys, AreReadyOnceTheirServerIsKnown) {
  start_pair();
  EXPECT_FALSE(is_answered());
  EXPECT_EQ(standby_state(), pair::Standby::Joined);
  domains.callbacks.on_server("a", active.pid());
  EXPECT_FALSE(is_answered()) << "that is the other domain's";
  domains.callbacks.on_server("b", server.pid());
  settle();
  EXPECT_TRUE(is_answered());
  EXPECT_EQ(standby_state(), pair::Standby::Ready);
}

TEST_F(WarmStandbys, AServerThatHasEndedIsNone) {
  domains.callbacks.on_server("b", server.pid());
  server.end(kernel);
  start_pair();
  EXPECT_EQ(standby_state(), pair::Standby::Joined);
}

TEST_F(WarmStandbys, WhoseServerEndsWithoutAnAgentAreNotReady) {
  start_pair();
  domains.callbacks.on_server("b", server.pid());
  agent.reset();
  server.end(kernel);
  restart();
  EXPECT_THAT(detectors.expected, testing::Contains(standby.pid())) << "it is ended";
}

TEST_F(WarmStandbys, AreReadyAfterATimeWhereNoServerIsKnownAndThatIsTold) {
  restart(Milliseconds(1));
  Peer watcher = peer();
  ask(watcher, abi::Subscribe{});
  for (Peer* each : {&active, &standby}) each->reconnect();
  start_pair();
  while (standby_state() != pair::Standby::Ready) loop->run_once(Milliseconds(1000));
  EXPECT_TRUE(is_answered());
  std::string told;
  while (const auto received = watcher.receive()) {
    const auto* event = std::get_if<abi::Event>(&received->message);
    if (event != nullptr && event->what == abi::EventKind::Ready) told = event->text;
  }
  EXPECT_THAT(told, HasSubstr("no MPS server of its domain is known"));
}

TEST_F(WarmStandbys, WhoIsNeededAtOnceDoesNotWait) {
  start_pair();
  detectors.callbacks.on_exit(active.pid());
  settle();
  EXPECT_EQ(word(page).epoch, 1u);
  EXPECT_TRUE(is_answered());
}

TEST_F(WarmStandbys, WhoWarmsUpWhileItIsNeededDoesNotWait) {
  domains.has_servers = false;
  page = join(active, "llm", abi::Role::Active);
  join(standby, "llm", abi::Role::Standby);
  detectors.callbacks.on_exit(active.pid());
  say_ready();
  EXPECT_EQ(word(page).epoch, 1u);
}

TEST_F(WarmStandbys, AskTheNextAgentTheSameWhereOneIsKilledBeforeItAnswers) {
  start_pair();
  restart();
  come_back(false);
  say_ready();
  EXPECT_FALSE(is_answered());
  domains.callbacks.on_server("b", server.pid());
  settle();
  EXPECT_TRUE(is_answered());
  EXPECT_EQ(standby_state(), pair::Standby::Ready);
}

TEST_F(WarmStandbys, WhoComesBackReadyIsSoOnceItsServerIsKnown) {
  start_pair();
  standby.hang_up();
  settle();
  domains.callbacks.on_server("b", server.pid());
  EXPECT_EQ(standby_state(), pair::Standby::None) << "nobody is there to be ready";
  server.end(kernel);
  come_back(true);
  EXPECT_EQ(standby_state(), pair::Standby::Joined);
  Peer next = peer();
  domains.callbacks.on_server("b", next.pid());
  EXPECT_EQ(standby_state(), pair::Standby::Ready);
}

TEST_F(WarmStandbys, OpeningTheGpuHasServersLookedForWhereNoneIsKnown) {
  domains.has_servers = false;
  join(active, "llm", abi::Role::Active);
  const int asked = domains.asked_for_servers;
  detectors.callbacks.on_gpu_opened(active.pid());
  EXPECT_EQ(domains.asked_for_servers, asked + 1);
  domains.callbacks.on_server("a", server.pid());
  detectors.callbacks.on_gpu_opened(active.pid());
  EXPECT_EQ(domains.asked_for_servers, asked + 1);
}

}  // namespace
}  // namespace firebreak::agent
