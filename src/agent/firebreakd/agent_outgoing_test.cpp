// SPDX-License-Identifier: Apache-2.0
/// Tests of what the agent says to many, to slow ones and to those who never read.
#include "ground/base/units.h"
#include "shared/link/status_view.h"
#include "tests/doubles/agent/agent_test_support.h"

namespace firebreak::agent {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t base = 0x500000000000;
constexpr std::size_t most = vault::Vault::entries_max;

class AgentOutgoing : public AgentTest {
 protected:
  /// Publishes by requests with numbers from there on, or none.
  void publish(Peer& peer, std::size_t first, std::size_t count, std::uint64_t number = 0) {
    const os::Fd descriptor = memory();
    for (std::size_t i = first; i < first + count; ++i) {
      const std::string name = "part-" + std::to_string(i);
      peer.send(abi::Publish{name, base + i * 2 * mib, 2 * mib}, descriptor.get(),
                number == 0 ? 0 : number + i);
      settle();
      auto received = peer.receive();
      ASSERT_TRUE(received && std::holds_alternative<abi::Done>(received->message)) << name;
    }
  }
  /// Reads as the loop runs, until nothing more comes.
  std::vector<Peer::Received> all_of(Peer& peer) {
    std::vector<Peer::Received> all;
    for (bool more = true; more;) {
      more = false;
      while (auto received = peer.receive()) {
        all.push_back(std::move(*received));
        more = true;
      }
      settle();
    }
    return all;
  }
  std::optional<link::TenantView> view(const std::string& tenant) {
    return link::parse_status(agent->status_json()).tenant(tenant);
  }
  /// One each, of a process that nobody knows.
  void make_events(int count) {
    for (int i = 0; i < count; ++i) {
      xid(99999);
      settle();
    }
  }
};

TEST_F(AgentOutgoing, AnAnswerRepeatsTheNumberOfItsRequest) {
  Peer active = peer();
  active.send(abi::Join{"llm", abi::Role::Active}, -1, 17);
  active.send(abi::Ready{}, -1, 18);
  active.send(abi::StatusRequest{}, -1, 19);
  settle();
  const auto answers = all_of(active);
  ASSERT_EQ(answers.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(answers[i].number, 17 + i);
}

TEST_F(AgentOutgoing, AnswersThatComeLaterRepeatItToo) {
  Peer active = peer(), command = peer();
  join(active, "llm", abi::Role::Active);
  command.send(abi::Inject{"llm", "trap", 1}, -1, 5);
  command.send(abi::EndTenant{"llm", 0}, -1, 6);
  command.send(abi::StatusRequest{}, -1, 7);
  settle();
  active.send(abi::Injected{17, ""});
  detectors.callbacks.on_exit(active.pid());
  settle();
  const auto answers = all_of(command);
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[0].number, 7u);
  EXPECT_EQ(answers[1].number, std::holds_alternative<abi::Ended>(answers[1].message) ? 6u : 5u);
  EXPECT_NE(answers[1].number, answers[2].number);
}

TEST_F(AgentOutgoing, NonsenseWithANumberIsRefusedUnderIt) {
  auto raw = os::connect(path, Milliseconds(1000));
  const std::string text = R"({"type":"dance","number":4})";
  ASSERT_TRUE(raw->send(std::as_bytes(std::span(text)), {}, Milliseconds(1000)));
  settle();
  const auto answer = raw->receive(Milliseconds(1000));
  ASSERT_TRUE(answer);
  EXPECT_EQ(
      abi::decode_letter({reinterpret_cast<const char*>(answer->bytes.data()), answer->bytes.size()})->number,
      4u);
}

// Programs before 0.7 are sent everything at once, more than a socket takes.
TEST_F(AgentOutgoing, AnOlderStandbyThatReadsSlowlyIsSentAllOfAThousandAllocations) {
  Peer active = peer(), standby = peer();
  join(active, "llm", abi::Role::Active);
  publish(active, 0, most);
  standby.send(abi::Join{"llm", abi::Role::Standby});
  settle();
  const auto all = all_of(standby);
  ASSERT_EQ(all.size(), 1 + most);
  EXPECT_EQ(std::get<abi::Joined>(all[0].message).allocations, most);
  for (std::size_t i = 1; i < all.size(); ++i) {
    EXPECT_EQ(std::get<abi::Allocation>(all[i].message).name, "part-" + std::to_string(i - 1));
    EXPECT_EQ(all[i].descriptors.size(), 1u);
  }
}

TEST_F(AgentOutgoing, ANewerStandbyIsSentOnlyWhatItAsksFor) {
  Peer active = peer(), standby = peer();
  active.send(abi::Join{"llm", abi::Role::Active}, -1, 1);
  settle();
  all_of(active);
  publish(active, 0, most, 2);
  standby.send(abi::Join{"llm", abi::Role::Standby}, -1, 1);
  settle();
  EXPECT_EQ(all_of(standby).size(), 1u);
  for (std::size_t i = 0; i < most; ++i) {
    standby.send(abi::GiveAllocation{"part-" + std::to_string(i)}, -1, 2 + i);
    settle();
    const auto given = standby.receive();
    ASSERT_TRUE(given);
    EXPECT_EQ(given->number, 2 + i);
    EXPECT_EQ(std::get<abi::Allocation>(given->message).address, base + i * 2 * mib);
    EXPECT_EQ(given->descriptors.size(), 1u);
  }
  standby.send(abi::GiveAllocation{"another"}, -1, 5000);
  settle();
  EXPECT_TRUE(std::holds_alternative<abi::Done>(standby.receive()->message));
}

TEST_F(AgentOutgoing, AStandbyIsToldOfWhatItsActiveMakesLater) {
  Peer active = peer(), standby = peer(), stranger = peer();
  join(active, "llm", abi::Role::Active);
  standby.send(abi::Join{"llm", abi::Role::Standby}, -1, 1);
  settle();
  all_of(standby);
  publish(active, 0, 1);
  const auto told = standby.receive();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->number, 0u);
  EXPECT_EQ(std::get<abi::Allocation>(told->message).name, "part-0");
  EXPECT_TRUE(told->descriptors.empty());
  EXPECT_THAT(refusal(stranger, abi::GiveAllocation{"part-0"}), HasSubstr("role"));
}

TEST_F(AgentOutgoing, OneAllocationTooManyIsRefusedInWords) {
  Peer active = peer();
  join(active, "llm", abi::Role::Active);
  publish(active, 0, most);
  const os::Fd descriptor = memory();
  const auto answer = ask(active, abi::Publish{"one-more", base + most * 2 * mib, 2 * mib}, descriptor.get());
  const auto& refused = std::get<abi::Refused>(answer);
  EXPECT_THAT(refused.reason, HasSubstr("at most 1024 allocations"));
  EXPECT_TRUE(refused.used_up);
}

TEST_F(AgentOutgoing, TheStatusOfTwoHundredTenantsIsAnsweredInAFile) {
  std::vector<Peer> peers;
  for (int i = 0; i < 200; ++i) {
    peers.push_back(peer());
    join(peers.back(), "tenant-" + std::to_string(i), abi::Role::Active);
  }
  Peer command = peer();
  command.send(abi::StatusRequest{}, -1, 1);
  settle();
  auto answer = command.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(std::get<abi::StatusDocument>(answer->message).json, "");
  ASSERT_EQ(answer->descriptors.size(), 1u);
  const auto document = os::content_of(answer->descriptors[0].get());
  EXPECT_EQ(link::parse_status(*document).tenants.size(), 200u);
  Peer older = peer();
  EXPECT_THAT(refusal(older, abi::StatusRequest{}), HasSubstr("older than the agent"));
}

// Nothing is lost in the middle: either all comes, or the connection ends.
TEST_F(AgentOutgoing, ASubscriberThatReadsLateMissesNothing) {
  Peer watcher = peer();
  ask(watcher, abi::Subscribe{});
  make_events(2000);
  EXPECT_EQ(all_of(watcher).size(), 2000u);
  EXPECT_FALSE(watcher.is_cut_off());
}

TEST_F(AgentOutgoing, ASubscriberThatNeverReadsIsCutOffAndNobodyElseIs) {
  Peer active = peer(), watcher = peer(), reader = peer();
  join(active, "llm", abi::Role::Active);
  ask(watcher, abi::Subscribe{});
  ask(reader, abi::Subscribe{});
  for (int i = 0; i < 10; ++i) {
    make_events(1000);
    EXPECT_EQ(all_of(reader).size(), 1000u);
  }
  EXPECT_LT(all_of(watcher).size(), 10000u);
  EXPECT_TRUE(watcher.is_cut_off());
  EXPECT_FALSE(reader.is_cut_off());
  EXPECT_TRUE(view("llm"));
}

TEST_F(AgentOutgoing, AStandbyThatReadsNoAnswersLosesItsConnectionAndItsActiveGoesOn) {
  Peer active = peer(), standby = peer();
  join(active, "llm", abi::Role::Active);
  join(standby, "llm", abi::Role::Standby);
  std::uint64_t asked = 0;
  while (standby.try_to_send(abi::StatusRequest{}, -1, ++asked)) settle();
  EXPECT_LT(all_of(standby).size(), asked);
  EXPECT_EQ(view("llm")->active, active.pid());
  EXPECT_EQ(view("llm")->phase, pair::Phase::Serving);
}

}  // namespace
}  // namespace firebreak::agent
