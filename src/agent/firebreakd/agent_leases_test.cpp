// SPDX-License-Identifier: Apache-2.0
/// Tests of what outlives a tenant's processes, who may have it, and how a fenced process becomes a standby.
#include "ground/base/units.h"
#include "tests/doubles/agent/agent_test_support.h"
#include "tests/doubles/os/closer_test_support.h"

namespace firebreak::agent {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::uint64_t base = 0x500000000000;

class AgentLeases : public AgentTest {
 protected:
  /// The agent anew, with a quota and a lease.
  void start(Milliseconds lease, std::uint64_t quota_bytes = 0) {
    agent.reset();
    AgentOptions options;
    options.socket_path = path;
    options.lease = lease;
    options.quota_bytes = quota_bytes;
    agent = start_agent(options);
  }
  void publish(Peer& peer, const std::string& name, abi::Memory memory = abi::Memory::State) {
    const os::Fd descriptor = this->memory();
    EXPECT_TRUE(std::holds_alternative<abi::Done>(
        ask(peer, abi::Publish{name, base, 2 * mib, memory}, descriptor.get())));
  }
};

TEST_F(AgentLeases, MemoryOfALostTenantIsThereForWhoIsStartedAnew) {
  start(Milliseconds(60'000));
  Peer first = peer();
  const os::Mapping page = join(first, "llm", abi::Role::Active);
  publish(first, "weights", abi::Memory::Weights);
  detectors.callbacks.on_exit(first.pid());
  EXPECT_THAT(agent->status_json(), HasSubstr("\"lost\""));

  Peer second = peer();
  second.send(abi::Join{"llm", abi::Role::Active});
  settle();
  auto joined = second.receive();
  ASSERT_TRUE(joined && std::holds_alternative<abi::Joined>(joined->message));
  EXPECT_EQ(std::get<abi::Joined>(joined->message).epoch, 1u);
  EXPECT_EQ(std::get<abi::Joined>(joined->message).allocations, 1u);
  EXPECT_EQ(word(page).epoch, 1u);  // whatever is left of the first one is fenced
  auto weights = second.receive();
  ASSERT_TRUE(weights && std::holds_alternative<abi::Allocation>(weights->message));
  EXPECT_EQ(std::get<abi::Allocation>(weights->message).memory, abi::Memory::Weights);
  EXPECT_EQ(weights->descriptors.size(), 1u);
}

TEST_F(AgentLeases, EndAndThenTheMemoryIsReleased) {
  start(Milliseconds(1));
  Peer active = peer(), watcher = peer();
  join(active, "llm", abi::Role::Active);
  publish(active, "state");
  ask(watcher, abi::Subscribe{});
  detectors.callbacks.on_exit(active.pid());
  while (agent->status_json().find("llm") != std::string::npos) loop->run_once(Milliseconds(1000));
  std::string told;
  while (auto received = watcher.receive()) told = std::get<abi::Event>(received->message).text;
  EXPECT_EQ(told, "2 MiB in 1 allocations: its lease is over");
}

TEST_F(AgentLeases, AThousandOfThemLeaveNothing) {
  start(Milliseconds(1));
  Peer active = peer();
  const auto live_one = [&](int number) {
    join(active, "llm-" + std::to_string(number), abi::Role::Active);
    publish(active, "state");
    EXPECT_THAT(agent->status_json(), HasSubstr("llm-"));
    active.hang_up();
    detectors.callbacks.on_exit(active.pid());
    while (agent->status_json().find("llm-") != std::string::npos) loop->run_once(Milliseconds(1000));
    active.reconnect();
    settle();
  };
  live_one(0);
  os::await_closers();
  const std::size_t descriptors = kernel.list_directory("/proc/self/fd").value().size();
  const std::size_t kept = manager.kept.size();
  for (int number = 1; number <= 1000; ++number) live_one(number);
  os::await_closers();
  EXPECT_EQ(kernel.list_directory("/proc/self/fd").value().size(), descriptors);
  EXPECT_EQ(manager.kept.size(), kept);
}

TEST_F(AgentLeases, AreNotForWhoHasFinishedNorForWhoLeftNothing) {
  start(Milliseconds(60'000));
  Peer active = peer(), idle = peer();
  join(active, "llm", abi::Role::Active);
  publish(active, "state");
  ask(active, abi::Finish{});
  detectors.callbacks.on_exit(active.pid());
  join(idle, "idle", abi::Role::Active);
  detectors.callbacks.on_exit(idle.pid());
  EXPECT_THAT(agent->status_json(), Not(HasSubstr("llm")));
  EXPECT_THAT(agent->status_json(), Not(HasSubstr("idle")));
}

TEST_F(AgentLeases, NobodyGetsMoreThanTheQuota) {
  start(Milliseconds(1000), 2 * mib);
  Peer active = peer();
  join(active, "llm", abi::Role::Active);
  publish(active, "weights");
  const os::Fd more = memory();
  const abi::Message answer = ask(active, abi::Publish{"more", base + 2 * mib, 2 * mib}, more.get());
  ASSERT_TRUE(std::holds_alternative<abi::Refused>(answer));
  EXPECT_TRUE(std::get<abi::Refused>(answer).used_up);
  EXPECT_THAT(std::get<abi::Refused>(answer).reason, HasSubstr("beyond the tenant's quota"));
}

TEST_F(AgentLeases, WhoWasPlacedIsKnownByItsToken) {
  Peer command = peer(), stranger = peer(), tenant = peer();
  const auto placed = std::get<abi::Placed>(ask(command, abi::Place{"llm", abi::Role::Active}));
  std::string token;
  for (const auto& [name, value] : placed.environment) {
    if (name == "FIREBREAK_TOKEN") token = value;
  }
  EXPECT_THAT(refusal(stranger, abi::Join{"llm", abi::Role::Active}), HasSubstr("not the token"));
  EXPECT_THAT(refusal(stranger, abi::Join{"llm", abi::Role::Active, token.substr(1) + "x"}),
              HasSubstr("not the token"));
  EXPECT_TRUE(std::holds_alternative<abi::Joined>(ask(tenant, abi::Join{"llm", abi::Role::Active, token})));
}

TEST_F(AgentLeases, AFencedActiveThatWorksOnBecomesTheStandby) {
  Peer active = peer(), standby = peer();
  const os::Mapping page = join(active, "llm", abi::Role::Active);
  join(standby, "llm", abi::Role::Standby);
  EXPECT_THAT(refusal(standby, abi::StandDown{}), HasSubstr("not for a process in this role"));
  ask(standby, abi::Ready{});
  xid(FakeDomains::server_of_a);
  EXPECT_EQ(word(page).epoch, 1u);
  ask(standby, abi::Resumed{0});
  EXPECT_TRUE(std::holds_alternative<abi::Done>(ask(active, abi::StandDown{})));
  EXPECT_TRUE(std::holds_alternative<abi::Done>(ask(active, abi::Ready{})));
  detectors.callbacks.on_exit(standby.pid());
  EXPECT_EQ(word(page).epoch, 2u);
  EXPECT_THAT(detectors.expected, testing::IsEmpty());  // nobody was ended
}

TEST_F(AgentLeases, AnActiveThatHandsOverBecomesTheStandbyOfItsOwn) {
  Peer active = peer(), standby = peer(), command = peer();
  const os::Mapping page = join(active, "llm", abi::Role::Active);
  EXPECT_THAT(refusal(command, abi::HandOver{"llm"}), HasSubstr("no standby that is ready"));
  EXPECT_THAT(refusal(command, abi::HandOver{"other"}), HasSubstr("no tenant 'other'"));
  join(standby, "llm", abi::Role::Standby);
  EXPECT_THAT(refusal(active, abi::StandDown{}), HasSubstr("no standby that is ready"));
  EXPECT_EQ(word(page).epoch, 0u);
  ask(standby, abi::Ready{});
  EXPECT_TRUE(std::holds_alternative<abi::Done>(ask(command, abi::HandOver{"llm"})));
  EXPECT_EQ(std::get<abi::HandOver>(active.receive()->message).tenant, "llm");
  EXPECT_EQ(word(page).epoch, 0u);  // the standby has only been asked
  EXPECT_TRUE(std::holds_alternative<abi::Done>(ask(active, abi::StandDown{})));
  EXPECT_EQ(word(page).epoch, 1u);
  ask(standby, abi::Resumed{0});
  ask(active, abi::Ready{});
  EXPECT_TRUE(std::holds_alternative<abi::Done>(ask(standby, abi::StandDown{})));  // the way back
  EXPECT_EQ(word(page).epoch, 2u);
  EXPECT_THAT(detectors.expected, testing::IsEmpty());  // nobody was ended
}

TEST_F(AgentLeases, HowLongATenantHadNoStandbyIsTold) {
  Peer active = peer(), standby = peer(), watcher = peer();
  join(active, "llm", abi::Role::Active);
  ask(watcher, abi::Subscribe{});
  clock.advance(Milliseconds(1500));
  EXPECT_THAT(agent->status_json(), HasSubstr("\"unprotected_ms\": 1500"));
  join(standby, "llm", abi::Role::Standby);
  ask(standby, abi::Ready{});
  EXPECT_THAT(agent->status_json(), HasSubstr("\"unprotected_ms\": null"));
  std::string told;
  while (auto received = watcher.receive()) {
    const auto& event = std::get<abi::Event>(received->message);
    if (event.what == abi::EventKind::Protected) told = event.text;
  }
  EXPECT_EQ(told, "had no standby for 1500 ms");
}

}  // namespace
}  // namespace firebreak::agent
