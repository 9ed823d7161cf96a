// SPDX-License-Identifier: Apache-2.0
#include "agent/loop/rights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace firebreak::agent {
namespace {

using testing::HasSubstr;

constexpr uid_t alice = 1000;
constexpr uid_t bob = 1001;
constexpr Asking operator_who{Entrance::Operators, 0};
constexpr Asking alice_who{Entrance::Tenants, alice};

/// Returns each request that there is, as it is for the tenant "llm".
std::vector<std::pair<abi::Message, Need>> all_requests() {
  return {{abi::Join{"llm", abi::Role::Active}, Need::Nothing},
          {abi::Rejoin{"llm"}, Need::Nothing},
          {abi::StandDown{}, Need::Member},
          {abi::Publish{}, Need::Member},
          {abi::GiveAllocation{}, Need::Member},
          {abi::Share{}, Need::Member},
          {abi::GiveShared{}, Need::Member},
          {abi::Listen{}, Need::Member},
          {abi::GiveListener{}, Need::Member},
          {abi::NextConnection{}, Need::Member},
          {abi::ReleaseConnection{}, Need::Member},
          {abi::Ready{}, Need::Member},
          {abi::Resumed{}, Need::Member},
          {abi::Finish{}, Need::Member},
          {abi::TurnWanted{}, Need::Member},
          {abi::Injected{}, Need::Member},
          {abi::Output{}, Need::Member},
          {abi::Place{"llm", abi::Role::Active}, Need::Owner},
          {abi::Adopt{"llm", abi::Role::Active, 7}, Need::Owner},
          {abi::EndProcess{"llm", 7}, Need::Owner},
          {abi::EndTenant{"llm"}, Need::Owner},
          {abi::Inject{"llm", "trap"}, Need::Owner},
          {abi::HandOver{"llm"}, Need::Owner},
          {abi::Rest{"llm"}, Need::Owner},
          {abi::GiveCoreDumpPipe{}, Need::Nothing},
          {abi::CoreDumpMode{}, Need::Nothing},
          {abi::StatusRequest{}, Need::Nothing},
          {abi::Subscribe{}, Need::Nothing},
          {abi::Shutdown{}, Need::Operator},
          {abi::GpuRecovered{}, Need::Operator}};
}

bool may(const Asking& who, const abi::Message& request, std::optional<uid_t> owner) {
  return may_ask(who, request, owner).has_value();
}

TEST(Rights, OfAnOperatorAreAll) {
  for (const auto& [request, need] : all_requests())
    EXPECT_TRUE(may(operator_who, request, bob)) << request.index();
}

TEST(Rights, OfAnObserverAreToAskForTheStatusAndNothingElse) {
  const Asking observer{Entrance::Observers, alice};
  for (const auto& [request, need] : all_requests()) {
    const bool is_status = std::holds_alternative<abi::StatusRequest>(request);
    EXPECT_EQ(may(observer, request, alice), is_status) << request.index();
    EXPECT_EQ(may(observer, request, std::nullopt), is_status) << request.index();
  }
  EXPECT_TRUE(may_see(observer, bob));
}

TEST(Rights, OfATenantsConnectionAreItsUsers) {
  for (const auto& [request, need] : all_requests()) {
    EXPECT_EQ(need_of(request), need) << request.index();
    EXPECT_EQ(may(alice_who, request, alice), need != Need::Operator) << request.index();
    EXPECT_EQ(may(alice_who, request, std::nullopt), need != Need::Operator) << request.index();
    EXPECT_EQ(may(alice_who, request, bob), need != Need::Operator && need != Need::Owner) << request.index();
  }
}

/// A message that is new has no row yet: it is here, or the agent's alone to send.
TEST(Rights, AreSaidOfEachMessageThatAgentsAreSent) {
  constexpr std::size_t from_the_agent = 11;  // Joined and what follows it in abi::Message
  EXPECT_EQ(all_requests().size() + from_the_agent, std::variant_size_v<abi::Message>);
}

TEST(Rights, RootAtTheTenantsSocketIsATenantAsAnyOther) {
  const Asking root_in_a_container{Entrance::Tenants, 0};
  EXPECT_FALSE(may(root_in_a_container, abi::Shutdown{}, std::nullopt));
  EXPECT_FALSE(may(root_in_a_container, abi::EndTenant{"llm"}, bob));
}

TEST(Rights, AConnectionIsOfOneTenant) {
  Asking who = alice_who;
  who.bound = "llm";
  EXPECT_TRUE(may(who, abi::Place{"llm", abi::Role::Standby}, alice));
  const Status other = may_ask(who, abi::Place{"other", abi::Role::Active}, std::nullopt);
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("tenant 'llm' alone"));
}

/// Nobody else takes it before its user comes, or between two of its programs.
TEST(Rights, ANameOfAUsersIsThatUsersAlone) {
  for (const char* name : {"uid1001.llm", "uid1001.", "uid1001.2.5"}) {
    EXPECT_FALSE(may(alice_who, abi::Join{name, abi::Role::Active}, {})) << name;
    EXPECT_FALSE(may(alice_who, abi::Place{name, abi::Role::Active}, {})) << name;
    EXPECT_TRUE(may({Entrance::Tenants, bob}, abi::Place{name, abi::Role::Active}, {})) << name;
    EXPECT_TRUE(may(operator_who, abi::EndTenant{name}, bob)) << name;
  }
  for (const char* name :
       {"uid", "uid1001", "uid1001llm", "uid.llm", "uid-1.llm", "uid4294968297.llm", "1001.llm"})
    EXPECT_TRUE(may(alice_who, abi::Place{name, abi::Role::Active}, {})) << name;
}

TEST(Rights, WhatIsNobodysIsForOperatorsToSee) {
  EXPECT_TRUE(may_see(operator_who, std::nullopt));
  EXPECT_FALSE(may_see(alice_who, std::nullopt));
  EXPECT_TRUE(may_see(alice_who, alice));
  EXPECT_FALSE(may_see(alice_who, bob));
}

}  // namespace
}  // namespace firebreak::agent
