// SPDX-License-Identifier: Apache-2.0
/// The explicit end: who is there is named, or ended; and nothing is kept.
#include "ground/base/units.h"
#include "tests/doubles/agent/agent_test_support.h"

namespace firebreak::agent {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class AgentShutdown : public AgentTest {
 protected:
  void ends(const Peer& tenant) {
    domains.terminations.at(tenant.pid())({});
    detectors.callbacks.on_exit(tenant.pid());
    settle();
  }
  static std::string ended(Peer& asker) {
    const auto answer = asker.receive();
    return answer ? std::get<abi::Ended>(answer->message).text : "(not yet)";
  }
};

TEST_F(AgentShutdown, EndsNothingWhereTenantsAreThere) {
  ProtectedTenant llm = pair("llm");
  Peer command = peer(), other = peer();
  ask(other, abi::Place{"coming", abi::Role::Active});
  EXPECT_THAT(refusal(command, abi::Shutdown{}), HasSubstr("tenants are there: llm, coming, which is just"));
  EXPECT_THAT(domains.terminations, IsEmpty());
  EXPECT_FALSE(domains.has_ended);
  EXPECT_THAT(manager.kept, Not(IsEmpty()));
}

TEST_F(AgentShutdown, NamesAClientThatNobodyHasPlaced) {
  Peer stranger = peer(), command = peer();
  domains.callbacks.on_clients("a", {clock.now(), {stranger.pid()}});
  settle();
  EXPECT_THAT(refusal(command, abi::Shutdown{}),
              HasSubstr("process " + std::to_string(stranger.pid()) + " ("));
}

TEST_F(AgentShutdown, ByForceEndsTenantsThenDomainsAndKeepsNothing) {
  ProtectedTenant llm = pair("llm");
  os::Fd memory_of_llm = memory();
  EXPECT_TRUE(std::holds_alternative<abi::Done>(
      ask(llm.active, abi::Publish{"state", 0x500000000000, 2 * mib}, memory_of_llm.get())));
  Peer command = peer(), late = peer();
  command.send(abi::Shutdown{true, 1000});
  settle();
  EXPECT_EQ(word(llm.page).epoch, 0u) << "nobody is to take over";
  EXPECT_THAT(refusal(late, abi::Place{"late", abi::Role::Active}), HasSubstr("being shut down"));
  EXPECT_THAT(refusal(late, abi::Join{"late", abi::Role::Active}), HasSubstr("being shut down"));
  ends(llm.active);
  EXPECT_FALSE(domains.has_ended) << "its standby is still there";
  EXPECT_EQ(ended(command), "(not yet)");
  ends(llm.standby);
  EXPECT_TRUE(domains.has_ended);
  EXPECT_THAT(ended(command), HasSubstr("MPS took it off the GPU"));
  EXPECT_THAT(manager.kept, IsEmpty());
  EXPECT_THAT(agent->status_json(), Not(HasSubstr("llm")));
}

/// A lost tenant has no process, and memory on a shelf.
TEST_F(AgentShutdown, ForgetsWhoHasOnlyMemory) {
  Peer active = peer(), command = peer();
  join(active, "llm", abi::Role::Active);
  os::Fd memory_of_llm = memory();
  EXPECT_TRUE(std::holds_alternative<abi::Done>(
      ask(active, abi::Publish{"state", 0x500000000000, 2 * mib}, memory_of_llm.get())));
  detectors.callbacks.on_exit(active.pid());
  settle();
  EXPECT_THAT(refusal(command, abi::Shutdown{}), HasSubstr("tenants are there: llm"));
  command.send(abi::Shutdown{true, 0});
  settle();
  EXPECT_EQ(ended(command), "no tenant was there");
  EXPECT_THAT(manager.kept, IsEmpty());
}

TEST_F(AgentShutdown, BySignalAsksNobody) {
  Peer active = peer();
  join(active, "llm", abi::Role::Active);
  agent->shut_down();
  agent->shut_down();
  settle();
  EXPECT_FALSE(domains.has_ended);
  EXPECT_FALSE(manager.signs_have_ended);
  ends(active);
  EXPECT_TRUE(domains.has_ended);
  EXPECT_TRUE(manager.signs_have_ended) << "that may take seconds";
  EXPECT_THAT(manager.kept, IsEmpty());
}

TEST_F(AgentShutdown, WhoAsksMeanwhileIsAnsweredToo) {
  Peer active = peer(), first = peer(), second = peer();
  join(active, "llm", abi::Role::Active);
  first.send(abi::Shutdown{true, 1000});
  settle();
  second.send(abi::Shutdown{});
  settle();
  ends(active);
  EXPECT_EQ(ended(first), ended(second));
}

}  // namespace
}  // namespace firebreak::agent
