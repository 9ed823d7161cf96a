// SPDX-License-Identifier: Apache-2.0
/// A tenant's clients outlive the process that served them, and the agent.
#include "tests/doubles/agent/agent_test_support.h"
#include "tests/doubles/os/stuck_accept_test_support.h"
#include "tests/doubles/os/tcp_test_support.h"

namespace firebreak::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Key;

class AgentConnections : public AgentTest {
 protected:
  os::Loopback loopback;

  void listen(Peer& peer) {
    EXPECT_TRUE(std::holds_alternative<abi::Done>(ask(peer, abi::Listen{}, loopback.listener.get())));
  }
  struct Given {
    std::uint64_t id = 0;  ///< 0: there is none
    os::Fd descriptor;
  };
  Given next(Peer& peer, std::uint64_t after) {
    peer.send(abi::NextConnection{after});
    settle();
    return given(peer.receive());
  }
  static Given given(std::optional<Peer::Received> received) {
    EXPECT_TRUE(received.has_value());
    const auto* given = received ? std::get_if<abi::ClientConnection>(&received->message) : nullptr;
    if (given == nullptr) return {};
    EXPECT_EQ(received->descriptors.size(), 1u);
    return {given->id, std::move(received->descriptors.at(0))};
  }
  /// Returns what the client gets of what is written to a connection that the agent gave.
  static std::string passes(const Given& connection, const os::Fd& client, const std::string& text) {
    EXPECT_EQ(::send(connection.descriptor.get(), text.data(), text.size(), 0),
              static_cast<ssize_t>(text.size()));
    return os::Loopback::read_all(client, text.size());
  }
  /// Returns what the agent says next, whatever else it waits for.
  std::optional<Peer::Received> await(Peer& peer) {
    std::optional<Peer::Received> received;
    while (!(received = peer.receive())) loop->run_once(Milliseconds(10));
    return received;
  }
  /// The peer asks until the agent's accept() waits, for a client that does not come.
  void hang_accept_of(Peer& peer) {
    const os::FlagFlipper flipper(loopback.listener.get());
    for (;;) {
      peer.send(abi::NextConnection{0});
      std::optional<Peer::Received> nobody;
      while (!(nobody = peer.receive())) {
        loop->run_once(Milliseconds(0));
        if (os::accepts_that_wait() > 0) return;
      }
    }
  }
  /// Restarts an agent that alone has what it holds.
  void restart_unkept() {
    agent.reset();
    manager.is_there = false;
    manager.kept.clear();
    agent = start_agent({path, {}});
  }
  void restart() {
    agent.reset();
    agent = start_agent({path, {}});
  }
};

TEST_F(AgentConnections, ClientsComeOneByOneAndAreKept) {
  Peer active = peer();
  join(active, "llm", abi::Role::Active);
  listen(active);
  EXPECT_EQ(next(active, 0).id, 0u);
  const os::Fd one = loopback.connect_client(), other = loopback.connect_client();
  EXPECT_EQ(passes(next(active, 0), one, "hello"), "hello");
  EXPECT_EQ(next(active, 0).id, 1u);  // asked again, it is the same
  EXPECT_EQ(passes(next(active, 1), other, "other"), "other");
  EXPECT_EQ(next(active, 2).id, 0u);
  ask(active, abi::ReleaseConnection{1});
  EXPECT_EQ(next(active, 0).id, 2u);
}

TEST_F(AgentConnections, TheSuccessorHasThemAll) {
  auto [active, standby, page] = pair("llm");
  listen(active);
  const os::Fd client = loopback.connect_client();
  EXPECT_EQ(passes(next(active, 0), client, "before"), "before");
  xid(FakeDomains::server_of_a);
  settle();
  EXPECT_THAT(refusal(active, abi::NextConnection{0}), HasSubstr("not for a process in this role"));
  EXPECT_EQ(passes(next(standby, 0), client, "after"), "after");
  standby.send(abi::GiveListener{});
  settle();
  EXPECT_EQ(standby.receive()->descriptors.size(), 1u);
}

TEST_F(AgentConnections, TheNextAgentHasThemAll) {
  Peer active = peer();
  join(active, "llm", abi::Role::Active);
  listen(active);
  const os::Fd one = loopback.connect_client(), other = loopback.connect_client();
  next(active, 0);
  next(active, 1);
  ask(active, abi::ReleaseConnection{1});
  restart();
  active.reconnect();
  settle();
  ask(active, abi::Rejoin{"llm"});
  EXPECT_EQ(passes(next(active, 0), other, "still"), "still");
  const os::Fd third = loopback.connect_client();
  EXPECT_EQ(next(active, 2).id, 3u);
}

TEST_F(AgentConnections, NothingIsKeptOfWhoHasFinished) {
  Peer active = peer();
  join(active, "llm", abi::Role::Active);
  listen(active);
  const os::Fd client = loopback.connect_client();
  next(active, 0);
  ask(active, abi::Finish{});
  detectors.callbacks.on_exit(active.pid());
  settle();
  EXPECT_THAT(manager.kept, ElementsAre(Key(document_name())));
  EXPECT_EQ(os::Loopback::read_all(client, 1), "");  // closed
}

TEST_F(AgentConnections, ListeningAgainIsAtAnotherSocket) {
  Peer active = peer();
  join(active, "llm", abi::Role::Active);
  listen(active);
  const os::Loopback another;
  EXPECT_TRUE(std::holds_alternative<abi::Done>(ask(active, abi::Listen{}, another.listener.get())));
  const os::Fd client = another.connect_client();
  EXPECT_EQ(passes(next(active, 0), client, "here"), "here");
}

TEST_F(AgentConnections, ATenantWhoseAcceptHangsHangsNobodyElse) {
  Peer active = peer(), other = peer();
  join(active, "llm", abi::Role::Active);
  join(other, "other", abi::Role::Active);
  listen(active);
  const os::Loopback others;
  ask(other, abi::Listen{}, others.listener.get());
  hang_accept_of(active);
  const os::Fd others_client = others.connect_client();
  other.send(abi::NextConnection{0});
  EXPECT_EQ(passes(given(await(other)), others_client, "goes on"), "goes on");
  active.send(abi::NextConnection{0});
  const os::Fd client = loopback.connect_client();
  const Given first = given(await(active)), again = given(await(active));
  EXPECT_EQ(passes(first, client, "hello"), "hello");
  EXPECT_EQ(again.id, first.id);
}

TEST_F(AgentConnections, AnAcceptThatHangsEndsWithTheAgent) {
  Peer active = peer();
  join(active, "llm", abi::Role::Active);
  listen(active);
  hang_accept_of(active);
  agent.reset();
  while (os::accepts_that_wait() > 0) std::this_thread::yield();
}

TEST_F(AgentConnections, AnAcceptThatHangsEndsWithItsSocket) {
  Peer active = peer();
  join(active, "llm", abi::Role::Active);
  listen(active);
  hang_accept_of(active);
  const os::Loopback another;
  active.send(abi::Listen{}, another.listener.get());
  EXPECT_EQ(given(await(active)).id, 0u) << "who had asked";
  EXPECT_TRUE(std::holds_alternative<abi::Done>(await(active)->message));
  const os::Fd client = another.connect_client();
  EXPECT_EQ(passes(next(active, 0), client, "here"), "here");
  while (os::accepts_that_wait() > 0) std::this_thread::yield();
}

TEST_F(AgentConnections, WhoComesAfterTheAskerHasLeftIsGivenToTheNext) {
  Peer active = peer();
  join(active, "llm", abi::Role::Active);
  listen(active);
  hang_accept_of(active);
  active.hang_up();
  const os::Fd client = loopback.connect_client();
  settle();
  active.reconnect();
  settle();
  ask(active, abi::Rejoin{"llm"});
  const Given first = next(active, 0);
  EXPECT_EQ(first.id, 1u);
  EXPECT_EQ(passes(first, client, "hello"), "hello");
  EXPECT_EQ(next(active, 1).id, 0u);
}

TEST_F(AgentConnections, ThereIsABoundOnWhoWaitsForAnAccept) {
  Peer active = peer();
  join(active, "llm", abi::Role::Active);
  listen(active);
  hang_accept_of(active);
  for (std::size_t i = 1; i <= ClientConnections::most_askers; ++i) active.send(abi::NextConnection{0});
  EXPECT_TRUE(std::holds_alternative<abi::Refused>(await(active)->message));
}

TEST_F(AgentConnections, AConnectionThatLingersStopsNobody) {
  restart_unkept();
  Peer active = peer();
  join(active, "llm", abi::Role::Active);
  listen(active);
  const os::Fd one = loopback.connect_client(4096), other = loopback.connect_client(4096);
  const std::size_t to_one = os::Loopback::make_linger(next(active, 0).descriptor);
  const std::size_t to_other = os::Loopback::make_linger(next(active, 1).descriptor);
  EXPECT_TRUE(std::holds_alternative<abi::Done>(ask(active, abi::ReleaseConnection{1})));
  ask(active, abi::Finish{});
  detectors.callbacks.on_exit(active.pid());
  settle();
  EXPECT_EQ(os::Loopback::read_to_end(one), to_one) << "released";
  EXPECT_EQ(os::Loopback::read_to_end(other), to_other) << "the tenant is gone";
}

TEST_F(AgentConnections, WhatComesWithMessagesStopsNobodyEither) {
  Peer stranger = peer();
  auto refused = loopback.lingering(), unread = loopback.lingering();
  stranger.send(abi::Listen{}, refused.connection.get());
  refused.connection.reset();
  auto raw = os::connect(path, Milliseconds(1000));
  const std::string nonsense = "nonsense";
  ASSERT_TRUE(raw->send(std::as_bytes(std::span(nonsense)), {}, Milliseconds(1000)));
  const int descriptor = unread.connection.get();
  ASSERT_TRUE(raw->send(std::as_bytes(std::span(nonsense)), std::span(&descriptor, 1), Milliseconds(1000)));
  unread.connection.reset();
  settle();
  EXPECT_EQ(os::Loopback::read_to_end(refused.client), refused.sent);
  EXPECT_EQ(os::Loopback::read_to_end(unread.client), unread.sent)
      << "it came behind what ended the connection";
}

TEST_F(AgentConnections, WhatCannotBeIsRefused) {
  Peer active = peer(), stranger = peer();
  join(active, "llm", abi::Role::Active);
  EXPECT_THAT(refusal(active, abi::NextConnection{0}), HasSubstr("fb_listen comes first"));
  EXPECT_THAT(refusal(active, abi::GiveListener{}), HasSubstr("listens nowhere"));
  EXPECT_THAT(refusal(active, abi::Listen{}), HasSubstr("takes one socket"));
  const os::Fd file = memory();
  EXPECT_THAT(refusal(active, abi::Listen{}, file.get()), HasSubstr("no TCP socket that listens"));
  for (const abi::Message& each :
       {abi::Message(abi::Listen{}), abi::Message(abi::GiveListener{}), abi::Message(abi::NextConnection{0}),
        abi::Message(abi::ReleaseConnection{1})}) {
    EXPECT_THAT(refusal(stranger, each), HasSubstr("not for a process in this role"));
  }
}

}  // namespace
}  // namespace firebreak::agent
