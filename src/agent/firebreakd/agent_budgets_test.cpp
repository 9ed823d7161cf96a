// SPDX-License-Identifier: Apache-2.0
/// Tests of what one tenant may make the agent keep, or do.
#include <signal.h>

#include "tests/doubles/agent/agent_test_support.h"
#include "tests/doubles/os/tcp_test_support.h"

namespace firebreak::agent {
namespace {

using testing::HasSubstr;

class AgentBudgets : public AgentTest {
 protected:
  void signal_shelf(int number) {
    for (const pid_t pid : os::children_of(kernel, ::getpid())) {
      const std::string stat = kernel.read_file(os::proc_folder(pid) + "/stat").value_or("");
      if (!os::program_name(stat).starts_with("agent_test_shel")) continue;
      EXPECT_TRUE(kernel.send_signal(kernel.pidfd_open(pid).value(), number));
    }
  }
  std::optional<Peer::Received> await(Peer& peer) {
    std::optional<Peer::Received> received;
    while (!(received = peer.receive())) loop->run_once(Milliseconds(10));
    return received;
  }
};

/// One of before 0.7 gets its memory unasked, each time.
TEST_F(AgentBudgets, MemoryThatIsOnItsWayIsAskedForOnceMoreAtMost) {
  constexpr int many = 50;
  Peer active = peer();
  join(active, "llm", abi::Role::Active);
  const os::Fd descriptor = memory();
  ASSERT_TRUE(std::holds_alternative<abi::Done>(
      ask(active, abi::Publish{"state", 0x500000000000, 2 << 20}, descriptor.get())));
  signal_shelf(SIGSTOP);
  for (int i = 0; i < many; ++i) {
    active.send(abi::Rejoin{"llm"});
    EXPECT_TRUE(std::holds_alternative<abi::Done>(await(active)->message)) << i;
  }
  active.send(abi::GiveAllocation{"state"});
  signal_shelf(SIGCONT);
  settle();
  int came = 0;
  while (auto received = active.receive()) came += std::holds_alternative<abi::Allocation>(received->message);
  EXPECT_EQ(came, 3) << "the first, once more, and what was asked for by its name";
}

TEST_F(AgentBudgets, OneProcessDoesNotFillTheShelfsQueue) {
  Peer active = peer();
  join(active, "llm", abi::Role::Active);
  const os::Fd descriptor = memory();
  ASSERT_TRUE(std::holds_alternative<abi::Done>(
      ask(active, abi::Publish{"state", 0x500000000000, 2 << 20}, descriptor.get())));
  signal_shelf(SIGSTOP);
  for (std::size_t i = 0; i < AllocationGiver::most_questions; ++i) {
    active.send(abi::GiveAllocation{"state"});
    loop->run_once(Milliseconds(0));
  }
  active.send(abi::GiveAllocation{"state"});
  const auto answer = await(active);
  const auto* refused = std::get_if<abi::Refused>(&answer->message);
  ASSERT_NE(refused, nullptr);
  EXPECT_THAT(refused->reason, HasSubstr("on its way"));
  signal_shelf(SIGCONT);
  settle();
}

TEST_F(AgentBudgets, AFileOfAnyKindIsNotTakenForMemory) {
  Peer active = peer();
  join(active, "llm", abi::Role::Active);
  const auto pipe = os::make_pipe().value();
  const abi::Publish request{"state", 0x500000000000, 2 << 20};
  EXPECT_THAT(refusal(active, request, pipe.reading.get()), HasSubstr("neither memory"));
  EXPECT_TRUE(std::holds_alternative<abi::Done>(ask(active, request, memory().get())));
}

/// Clients cost the agent a descriptor each.
TEST_F(AgentBudgets, ClientsOfOneUsersTenantsWaitWhereThereAreTooMany) {
  agent.reset();
  AgentOptions options{path, {}};
  options.clients_of_user_max = 2;
  agent = start_agent(options);
  Peer active = peer(), other = peer();
  join(active, "llm", abi::Role::Active);
  join(other, "other", abi::Role::Active);
  const os::Loopback here, there;
  ask(active, abi::Listen{}, here.listener.get());
  ask(other, abi::Listen{}, there.listener.get());
  const os::Fd first = here.connect_client(), second = there.connect_client(), third = there.connect_client();
  EXPECT_TRUE(std::holds_alternative<abi::ClientConnection>(ask(active, abi::NextConnection{0})));
  EXPECT_TRUE(std::holds_alternative<abi::ClientConnection>(ask(other, abi::NextConnection{0})));
  EXPECT_TRUE(std::holds_alternative<abi::Done>(ask(other, abi::NextConnection{1}))) << "nobody, for now";
  EXPECT_TRUE(std::holds_alternative<abi::ClientConnection>(ask(other, abi::NextConnection{0})))
      << "who is there is given again";
  ask(active, abi::ReleaseConnection{1});
  EXPECT_TRUE(std::holds_alternative<abi::ClientConnection>(ask(other, abi::NextConnection{1})));
}

/// Else the agent's next life could not begin.
TEST_F(AgentBudgets, ATenantWhoseNamesCannotBeKeptIsRefused) {
  manager.room = fail(ErrorCode::ResourceExhausted, "the next agent could not be started");
  Peer active = peer();
  EXPECT_THAT(refusal(active, abi::Join{"llm", abi::Role::Active}), HasSubstr("could not be started"));
  manager.room = {};
  join(active, "llm", abi::Role::Active);
}

}  // namespace
}  // namespace firebreak::agent
