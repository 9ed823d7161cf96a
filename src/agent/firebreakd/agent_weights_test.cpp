// SPDX-License-Identifier: Apache-2.0
/// Memory that several tenants map: who gets it, when it goes, and what the next agent knows of it.
#include <nlohmann/json.hpp>

#include "ground/base/units.h"
#include "tests/doubles/agent/agent_test_support.h"

namespace firebreak::agent {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr Milliseconds lease{60'000};

class AgentWeights : public AgentTest {
 protected:
  void SetUp() override { start(); }
  /// The agent anew. Nothing of the old one is asked, as when it is killed.
  void start(std::uint64_t quota_bytes = 0, Milliseconds its_lease = lease) {
    agent.reset();
    AgentOptions options;
    options.socket_path = path;
    options.lease = its_lease;
    options.quota_bytes = quota_bytes;
    agent = start_agent(options);
    settle();
  }
  Peer active(const std::string& tenant) {
    Peer made = peer();
    join(made, tenant, abi::Role::Active);
    return made;
  }
  abi::Message publish(Peer& maker, const std::string& name, std::uint64_t size_bytes = 2 * mib,
                       abi::Memory memory = abi::Memory::Shared) {
    const os::Fd descriptor = this->memory();
    return ask(maker, abi::Publish{name, 0, size_bytes, memory}, descriptor.get());
  }
  std::uint64_t address_of(const abi::Message& answer) {
    const auto* const allocation = std::get_if<abi::Allocation>(&answer);
    EXPECT_NE(allocation, nullptr) << abi::encode(answer);
    return allocation == nullptr ? 0 : allocation->address;
  }
  /// Asks by a request with a number, as programs do that know of shared memory.
  std::optional<Peer::Received> ask_for(Peer& reader, const std::string& owner, const std::string& name) {
    reader.send(abi::GiveShared{owner, name}, -1, ++number_);
    settle();
    return reader.receive();
  }
  bool gets(Peer& reader, const std::string& owner, const std::string& name) {
    const auto answer = ask_for(reader, owner, name);
    return answer && answer->descriptors.size() == 1 && std::get<abi::Allocation>(answer->message).is_shared;
  }
  nlohmann::json shared() { return nlohmann::json::parse(agent->status_json())["shared"]; }
  std::vector<std::string> tenants() {
    const nlohmann::json all = shared();
    return all.empty() ? std::vector<std::string>() : all[0]["tenants"].get<std::vector<std::string>>();
  }
  void end(Peer& process) {
    process.hang_up();
    detectors.callbacks.on_exit(process.pid());
    settle();
  }
  /// The agent looks at the time whenever a tenant has ended.
  void pass(Milliseconds time) {
    clock.advance(time);
    Peer one = active("one-more");
    ask(one, abi::Finish{});
    end(one);
  }

  std::uint64_t number_ = 100;
};

TEST_F(AgentWeights, HaveOneAddressForAllAndAreReadByWhoAsks) {
  Peer maker = active("maker"), reader = active("reader");
  const std::uint64_t address = address_of(publish(maker, "backbone", 4 * mib));
  EXPECT_EQ(address, SharedWeights::first_address);
  EXPECT_EQ(address_of(publish(maker, "head")), address + 4 * mib);
  EXPECT_TRUE(std::holds_alternative<abi::Done>(ask(maker, abi::Share{})));
  const auto answer = ask_for(reader, "maker", "head");
  ASSERT_TRUE(answer);
  const auto& head = std::get<abi::Allocation>(answer->message);
  EXPECT_EQ(head.address, address + 4 * mib);
  EXPECT_EQ(head.size_bytes, 2 * mib);
  EXPECT_EQ(head.memory, abi::Memory::Shared);
  EXPECT_TRUE(head.is_shared);
  EXPECT_EQ(answer->descriptors.size(), 1u);
  EXPECT_THAT(tenants(), ElementsAre("maker", "reader"));
  EXPECT_EQ(shared()[0]["bytes"], 6 * mib);
}

TEST_F(AgentWeights, WhoAsksTooEarlyIsToldWhenTheyAreShared) {
  Peer maker = active("maker"), reader = active("reader"), other = active("other");
  EXPECT_TRUE(std::holds_alternative<abi::Done>(ask_for(reader, "maker", "backbone")->message));
  EXPECT_TRUE(std::holds_alternative<abi::Done>(ask_for(other, "another", "backbone")->message));
  publish(maker, "backbone");
  EXPECT_FALSE(reader.receive()) << "it is not shared yet";
  EXPECT_TRUE(std::holds_alternative<abi::Done>(ask_for(reader, "maker", "backbone")->message));
  ask(maker, abi::Share{});
  const auto news = reader.receive();
  ASSERT_TRUE(news);
  EXPECT_EQ(std::get<abi::Shared>(news->message).owner, "maker");
  EXPECT_FALSE(other.receive());
  EXPECT_TRUE(gets(reader, "maker", "backbone"));
}

TEST_F(AgentWeights, AreSharedOnceByTheirMakerAndNotBeforeTheyAreMade) {
  Peer maker = active("maker"), standby = peer(), reader = active("reader");
  join(standby, "maker", abi::Role::Standby);
  const auto is_invalid = [](const abi::Message& answer) {
    const auto* const refused = std::get_if<abi::Refused>(&answer);
    return refused != nullptr && refused->invalid;
  };
  EXPECT_TRUE(is_invalid(ask(maker, abi::Share{})));
  publish(maker, "backbone");
  EXPECT_TRUE(is_invalid(ask(standby, abi::Share{})));
  EXPECT_TRUE(is_invalid(ask(reader, abi::Share{})));
  EXPECT_TRUE(std::holds_alternative<abi::Done>(ask(maker, abi::Share{})));
  EXPECT_TRUE(is_invalid(ask(maker, abi::Share{})));
  EXPECT_TRUE(is_invalid(publish(maker, "more")));
  EXPECT_TRUE(is_invalid(ask_for(reader, "maker", "more")->message));
  EXPECT_TRUE(std::holds_alternative<abi::Done>(ask(maker, abi::Share{true}))) << "its answer was lost";
}

TEST_F(AgentWeights, AreTheirMakersStandbysToo) {
  Peer maker = active("maker"), standby = peer();
  join(standby, "maker", abi::Role::Standby);
  publish(maker, "backbone");
  const auto own = [&] {
    standby.send(abi::GiveAllocation{"backbone"}, -1, ++number_);
    settle();
    std::optional<Peer::Received> answer = standby.receive();
    EXPECT_TRUE(answer && answer->descriptors.size() == 1);
    return std::get<abi::Allocation>(answer->message);
  };
  EXPECT_FALSE(own().is_shared);
  ask(maker, abi::Share{});
  EXPECT_TRUE(own().is_shared);
}

TEST_F(AgentWeights, ANameIsOneAllocationsWhateverItIsFor) {
  Peer maker = active("maker");
  const os::Fd descriptor = memory();
  ask(maker, abi::Publish{"state", 0x500000000000, 2 * mib}, descriptor.get());
  EXPECT_THAT(refusal(maker, abi::Publish{"state", 0, 2 * mib, abi::Memory::Shared}, descriptor.get()),
              HasSubstr("already has"));
  publish(maker, "backbone");
  EXPECT_THAT(refusal(maker, abi::Publish{"backbone", 0x500000200000, 2 * mib}, descriptor.get()),
              HasSubstr("already has"));
  EXPECT_THAT(refusal(maker, abi::Publish{"other", 0, 2 * mib, abi::Memory::Shared}),
              HasSubstr("one descriptor"));
}

TEST_F(AgentWeights, CountForTheQuotaOfTheirMakerAlone) {
  start(4 * mib);
  Peer maker = active("maker"), reader = active("reader");
  publish(maker, "backbone");
  const os::Fd descriptor = memory();
  const auto state = [&](Peer& of, std::uint64_t size_bytes) {
    return ask(of, abi::Publish{"state", 0x500000000000, size_bytes}, descriptor.get());
  };
  const auto too_much = std::get<abi::Refused>(state(maker, 4 * mib));
  EXPECT_TRUE(too_much.used_up);
  EXPECT_THAT(too_much.reason, HasSubstr("2 of 4 MiB are used"));
  EXPECT_TRUE(std::holds_alternative<abi::Done>(state(maker, 2 * mib)));
  EXPECT_TRUE(std::get<abi::Refused>(publish(maker, "more")).used_up);
  ask(maker, abi::Share{});
  EXPECT_TRUE(gets(reader, "maker", "backbone"));
  EXPECT_TRUE(std::holds_alternative<abi::Done>(state(reader, 4 * mib)));
}

TEST_F(AgentWeights, AsManyAsATenantMayHaveAreMadeSharedAndRestored) {
  Peer maker = active("maker"), reader = active("reader");
  std::set<std::uint64_t> addresses;
  for (std::size_t i = 0; i < vault::Vault::entries_max; ++i)
    addresses.insert(address_of(publish(maker, "piece-" + std::to_string(i))));
  EXPECT_EQ(addresses.size(), vault::Vault::entries_max);
  EXPECT_TRUE(std::get<abi::Refused>(publish(maker, "one-more")).used_up);
  ask(maker, abi::Share{});
  start();
  reader.reconnect();
  settle();
  ask(reader, abi::Rejoin{"reader"});
  for (std::size_t i = 0; i < vault::Vault::entries_max; ++i)
    ASSERT_TRUE(gets(reader, "maker", "piece-" + std::to_string(i))) << i;
}

TEST_F(AgentWeights, OutliveTheirMakerWhileAnybodyHasThemAndForALeaseAfter) {
  Peer maker = active("maker"), reader = active("reader");
  publish(maker, "backbone");
  ask(maker, abi::Share{});
  EXPECT_TRUE(gets(reader, "maker", "backbone"));
  ask(maker, abi::Finish{});
  end(maker);
  EXPECT_THAT(agent->status_json(), Not(HasSubstr("\"name\": \"maker\"")));
  pass(10 * lease);
  EXPECT_THAT(tenants(), ElementsAre("reader"));
  end(reader);
  pass(lease - Milliseconds(1));
  Peer another = active("another");
  EXPECT_TRUE(gets(another, "maker", "backbone")) << "within the lease";
  pass(10 * lease);
  EXPECT_THAT(tenants(), ElementsAre("another"));
  Peer watcher = peer();
  ask(watcher, abi::Subscribe{});
  end(another);
  pass(lease);
  EXPECT_THAT(shared(), IsEmpty());
  std::vector<std::string> told;
  while (auto received = watcher.receive()) told.push_back(std::get<abi::Event>(received->message).text);
  EXPECT_THAT(told, Contains("2 MiB in 1 shared allocations: its lease is over"));
}

TEST_F(AgentWeights, GoWithTheirMakerWhereItHasNotSharedThem) {
  Peer maker = active("maker"), reader = active("reader");
  publish(maker, "backbone");
  ask(maker, abi::Finish{});
  end(maker);
  EXPECT_THAT(shared(), IsEmpty());
  Peer next = active("maker");
  publish(next, "backbone");
  end(next);  // killed: it may be started anew within its lease
  EXPECT_THAT(shared(), Not(IsEmpty()));
  Peer third = active("maker");
  third.send(abi::GiveAllocation{"backbone"}, -1, ++number_);
  settle();
  std::optional<Peer::Received> own = third.receive();
  while (own && own->number == 0) own = third.receive();
  ASSERT_TRUE(own);
  EXPECT_FALSE(std::get<abi::Allocation>(own->message).is_shared);
  ask(third, abi::Share{});
  EXPECT_TRUE(gets(reader, "maker", "backbone"));
}

TEST_F(AgentWeights, AMakerIsNotStoppedWhileOthersHaveThem) {
  Peer maker = active("maker"), reader = active("reader"), command = peer();
  publish(maker, "backbone");
  ask(maker, abi::Share{});
  EXPECT_TRUE(gets(reader, "maker", "backbone"));
  EXPECT_THAT(
      refusal(command, abi::EndTenant{"maker"}),
      testing::AllOf(HasSubstr("others map what tenant 'maker' shares: reader"), HasSubstr("--force")));
  EXPECT_THAT(domains.asked, IsEmpty());
  command.send(abi::EndTenant{"reader"});
  settle();
  EXPECT_THAT(domains.asked, testing::SizeIs(1)) << "who has them may be";
  command.send(abi::EndTenant{"maker", 0, true});
  settle();
  EXPECT_THAT(domains.asked, testing::SizeIs(2));
}

TEST_F(AgentWeights, AreKnownToTheNextAgentWithWhoHasThem) {
  Peer maker = active("maker"), reader = active("reader"), unshared = active("unshared");
  const std::uint64_t address = address_of(publish(maker, "backbone"));
  ask(maker, abi::Share{});
  EXPECT_TRUE(gets(reader, "maker", "backbone"));
  const std::uint64_t other_address = address_of(publish(unshared, "half"));
  ask(maker, abi::Finish{});
  end(maker);
  start();
  EXPECT_EQ(shared().size(), 2u);
  EXPECT_THAT(tenants(), ElementsAre("reader"));
  Peer another = active("another");
  EXPECT_TRUE(gets(another, "maker", "backbone"));
  const auto comes_back = [this](Peer& one, const std::string& tenant) {
    one.reconnect();
    settle();
    EXPECT_TRUE(std::holds_alternative<abi::Done>(ask(one, abi::Rejoin{tenant})));
  };
  comes_back(unshared, "unshared");
  EXPECT_NE(address_of(publish(unshared, "more")), address);
  EXPECT_EQ(address_of(publish(unshared, "half")), other_address) << "asked again after the agent's death";
  comes_back(reader, "reader");
  end(reader);
  end(another);
  ask(unshared, abi::Finish{});
  end(unshared);
  EXPECT_EQ(shared().size(), 1u);
  pass(lease);
  EXPECT_THAT(shared(), IsEmpty());
  EXPECT_THAT(manager.kept, Not(Contains(testing::Key(HasSubstr("weights/")))));
}

TEST_F(AgentWeights, WhoEndedWhileThereWasNoAgentHasThemNoMore) {
  Peer maker = active("maker"), reader = active("reader");
  publish(maker, "backbone");
  ask(maker, abi::Share{});
  EXPECT_TRUE(gets(reader, "maker", "backbone"));
  agent.reset();
  maker.end(kernel);
  reader.end(kernel);
  start();
  EXPECT_THAT(tenants(), IsEmpty());
  pass(lease);
  EXPECT_THAT(shared(), IsEmpty());
}

TEST_F(AgentWeights, EndByThemselvesWhenTheirLeaseIsOver) {
  start(0, Milliseconds(1));
  Peer maker = active("maker");
  publish(maker, "backbone");
  ask(maker, abi::Share{});
  ask(maker, abi::Finish{});
  end(maker);
  while (!shared().empty()) {
    clock.advance(Milliseconds(1));
    loop->run_once(Milliseconds(1000));
  }
  settle();
  EXPECT_THAT(manager.kept, Not(Contains(testing::Key(HasSubstr("weights/")))));
}

TEST_F(AgentWeights, WhatCameToNoShelfIsForgottenByTheNextAgent) {
  Peer maker = active("maker");
  const os::Fd descriptor = memory();
  maker.send(abi::Publish{"backbone", 0, 2 * mib, abi::Memory::Shared}, descriptor.get(), ++number_);
  while (shared().empty()) loop->run_once(Milliseconds(100));
  manager.kept.erase("shelf/0");
  start();
  EXPECT_THAT(shared(), IsEmpty());
  maker.reconnect();
  settle();
  ask(maker, abi::Rejoin{"maker"});
  EXPECT_EQ(address_of(publish(maker, "backbone")), SharedWeights::first_address);
}

}  // namespace
}  // namespace firebreak::agent
