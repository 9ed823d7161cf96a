// SPDX-License-Identifier: Apache-2.0
/// The agent when descriptors are scarce.
#include <sys/resource.h>

#include "ground/base/units.h"
#include "ground/os/descriptors.h"
#include "ground/os/fd.h"
#include "tests/doubles/agent/agent_test_support.h"
#include "tests/doubles/os/closer_test_support.h"
#include "tests/doubles/os/tcp_test_support.h"

namespace firebreak::agent {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t of_a_pair = 27;
constexpr std::uint64_t reserve = 32;

class AgentDescriptors : public AgentTest {
 protected:
  /// Restarts with room for so many pairs, and a few descriptors of the test's own.
  void restart_with_room_for(std::uint64_t pairs) {
    agent.reset();
    os::await_closers();
    manager.is_there = false;  // the agent's kept descriptors would be the test's own
    manager.kept.clear();
    AgentOptions options;
    options.socket_path = path;
    options.descriptors_max = os::open_descriptors().value() + reserve + pairs * of_a_pair + of_a_pair / 2;
    agent = std::move(Agent::start(options, *loop, kernel, clock, domains, detectors, manager).value());
  }
};

TEST_F(AgentDescriptors, WhoIsLetInHasRoomForBothProcessesAndOthersAreToldWhy) {
  restart_with_room_for(2);
  Peer one = peer(), two = peer(), three = peer();
  EXPECT_TRUE(std::holds_alternative<abi::Placed>(ask(one, abi::Place{"one", abi::Role::Active})));
  join(two, "two", abi::Role::Active);
  for (const abi::Message& each : {abi::Message(abi::Place{"three", abi::Role::Active}),
                                   abi::Message(abi::Join{"three", abi::Role::Active}),
                                   abi::Message(abi::Adopt{"three", abi::Role::Active, three.pid()})}) {
    const abi::Message answer = ask(three, each);
    const auto* refused = std::get_if<abi::Refused>(&answer);
    ASSERT_NE(refused, nullptr);
    EXPECT_THAT(refused->reason, HasSubstr("no room for a process of tenant 'three'"));
    EXPECT_TRUE(refused->used_up);
  }
  EXPECT_TRUE(std::holds_alternative<abi::Placed>(ask(three, abi::Place{"two", abi::Role::Standby})));
  one.hang_up();  // the process does not come
  settle();
  join(three, "three", abi::Role::Active);
}

TEST_F(AgentDescriptors, AClientTakesNothingOfWhatOthersWerePromised) {
  restart_with_room_for(1);
  Peer active = peer();
  join(active, "llm", abi::Role::Active);
  const os::Loopback here;
  ask(active, abi::Listen{}, here.listener.get());
  std::vector<os::Fd> clients;
  std::uint64_t after = 0;
  for (std::uint64_t i = 0; i <= of_a_pair; ++i) {
    clients.push_back(here.connect_client());
    const abi::Message answer = ask(active, abi::NextConnection{after});
    if (std::holds_alternative<abi::Done>(answer)) break;  // nobody, for now
    ASSERT_TRUE(std::holds_alternative<abi::ClientConnection>(answer));
    after = std::get<abi::ClientConnection>(answer).id;
  }
  EXPECT_EQ(after, of_a_pair / 2);
}

TEST_F(AgentDescriptors, AnAllocationTakesNothingOfWhatOthersWerePromised) {
  restart_with_room_for(1);
  Peer active = peer();
  join(active, "llm", abi::Role::Active);
  const os::Fd descriptor = memory();
  std::uint64_t published = 0;
  for (;; ++published) {
    const abi::Message answer =
        ask(active,
            abi::Publish{"part-" + std::to_string(published), 0x500000000000 + published * 2 * mib, 2 * mib},
            descriptor.get());
    if (std::holds_alternative<abi::Done>(answer)) continue;
    EXPECT_THAT(std::get<abi::Refused>(answer).reason, HasSubstr("no room for allocation"));
    break;
  }
  EXPECT_EQ(published, of_a_pair / 2);
  // The refused one's descriptor is closed on another thread, and counts until then.
  Peer standby = peer();
  while (!std::holds_alternative<abi::Placed>(ask(standby, abi::Place{"llm", abi::Role::Standby}))) {
  }
}

TEST_F(AgentDescriptors, WhoComesWhenNoneIsLeftIsToldAndTheAgentSleeps) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the undefined-behaviour sanitizer needs descriptors to look at an object's type";
#endif
  auto late = os::connect(path, Milliseconds(1000));
  ASSERT_TRUE(late);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none_left{static_cast<rlim_t>(os::duplicate(0)->get()), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none_left), 0);
  settle();
  EXPECT_FALSE(loop->run_once(Milliseconds(0)));
  const auto told = late->receive(Milliseconds(1000));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(told);
  EXPECT_THAT(std::string(reinterpret_cast<const char*>(told->bytes.data()), told->bytes.size()),
              HasSubstr("the agent has no descriptor left"));
  Peer next = peer();
  join(next, "llm", abi::Role::Active);
}

}  // namespace
}  // namespace firebreak::agent
