// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/decide.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>

#include "tests/doubles/base/test_seed.h"

namespace firebreak::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr pair::State with_standby = {pair::Phase::Serving, pair::Standby::Ready, 0};

TenantFacts pair_in(std::string_view active, std::string_view standby, pair::State state = with_standby) {
  return {state, {active, true}, {standby, true}};
}

std::vector<std::size_t> promoted(const Effects& effects) {
  std::vector<std::size_t> all;
  for (const Promotion& each : effects.promotions) all.push_back(each.tenant);
  return all;
}

std::vector<pair::ActionType> acts_of(const Effects& effects, std::size_t tenant) {
  std::vector<pair::ActionType> all;
  for (const Act& each : effects.acts) {
    if (each.tenant == tenant) all.push_back(each.type);
  }
  return all;
}

TEST(Decide, AFencePromotesEveryTenantWhoseActiveIsThereAndGivesUpStandbysThere) {
  std::vector<TenantFacts> tenants = {pair_in("a", "b"), pair_in("b", "a"), pair_in("a", "b")};
  Effects effects;
  decide(tenants, FaultSeen{"a", pair::EventType::FenceSeen, true}, effects);
  EXPECT_THAT(promoted(effects), ElementsAre(0, 2));
  EXPECT_EQ(tenants[0].pair.phase, pair::Phase::Promoting);
  EXPECT_EQ(tenants[0].active.domain, "b");
  EXPECT_FALSE(tenants[0].standby.is_there);
  EXPECT_EQ(tenants[1].pair, (pair::State{pair::Phase::Serving, pair::Standby::None, 0}));
  EXPECT_THAT(acts_of(effects, 1), ElementsAre(pair::ActionType::EndStandby));
  EXPECT_EQ(effects.acts.back().why, "its MPS domain had a fault");
}

TEST(Decide, DangerPromotesNobody) {
  std::vector<TenantFacts> tenants = {pair_in("a", "b"), pair_in("b", "a")};
  Effects effects;
  decide(tenants, FaultSeen{"a", pair::EventType::DangerSeen, false}, effects);
  EXPECT_THAT(promoted(effects), IsEmpty());
  EXPECT_EQ(tenants[0].pair.phase, pair::Phase::Suspecting);
  EXPECT_EQ(tenants[1].pair, with_standby);
  decide(tenants, DangerSeen{}, effects);
  EXPECT_EQ(tenants[1].pair.phase, pair::Phase::Suspecting);
  EXPECT_THAT(acts_of(effects, 0), IsEmpty());
}

TEST(Decide, AnExitPromotesItsOwnTenantAndIsDangerToTheOthersOfItsDomain) {
  std::vector<TenantFacts> tenants = {pair_in("a", "b"), pair_in("a", "b"), pair_in("b", "a")};
  tenants[0].active.is_there = false;
  Effects effects;
  decide(tenants, Exited{.tenant = 0, .endangered = "a"}, effects);
  EXPECT_THAT(promoted(effects), ElementsAre(0));
  EXPECT_EQ(tenants[1].pair.phase, pair::Phase::Suspecting);
  EXPECT_EQ(tenants[2].pair, with_standby);
}

TEST(Decide, WhoHasLeftInGoodOrderIsFollowedByNobody) {
  std::vector<TenantFacts> tenants = {pair_in("a", "b")};
  tenants[0].active.is_there = false;
  Effects effects;
  decide(tenants, Exited{.tenant = 0, .has_left = true}, effects);
  EXPECT_THAT(promoted(effects), IsEmpty());
  EXPECT_THAT(acts_of(effects, 0), ElementsAre(pair::ActionType::DismissStandby));
}

TEST(Decide, AStandbyThatIsWarmTakesOverAtOnce) {
  std::vector<TenantFacts> tenants = {pair_in("a", "b", {pair::Phase::Serving, pair::Standby::Joined, 3})};
  tenants[0].standby_is_warm = true;
  Effects effects;
  decide(tenants, FaultSeen{"a", pair::EventType::FenceSeen, true}, effects);
  ASSERT_THAT(promoted(effects), ElementsAre(0));
  EXPECT_EQ(effects.promotions[0].epoch, 4u);
  EXPECT_EQ(std::ranges::count(effects.told, Told::What::StoodBy, &Told::what), 1);
}

TEST(Decide, LostContextsEndActivesThatAreFollowedAndStandbysThatSleepThere) {
  std::vector<TenantFacts> tenants = {pair_in("a", "b"), pair_in("b", "a")};
  Effects effects;
  decide(tenants, ClientsLost{"a"}, effects);
  EXPECT_THAT(promoted(effects), IsEmpty());
  EXPECT_THAT(acts_of(effects, 0), ElementsAre(pair::ActionType::StartDeadline, pair::ActionType::EndActive));
  EXPECT_THAT(acts_of(effects, 1), ElementsAre(pair::ActionType::EndStandby));
}

TEST(Decide, WhatIsTakenUpIsNotPromotedTwice) {
  const pair::State promoting = {pair::Phase::Promoting, pair::Standby::None, 5};
  std::vector<TenantFacts> tenants = {pair_in("b", "", promoting)};
  Effects effects;
  decide(tenants, TakenUp{0, 5}, effects);
  EXPECT_THAT(promoted(effects), IsEmpty());
  EXPECT_THAT(acts_of(effects, 0), ElementsAre(pair::ActionType::StartDeadline));
  decide(tenants, TakenUp{0, 4}, effects);
  EXPECT_THAT(promoted(effects), ElementsAre(0));
}

// --- random sequences

constexpr std::array domains = {std::string_view("a"), std::string_view("b"), std::string_view("c")};
constexpr std::array events_of_one = {pair::EventType::ActiveJoined,    pair::EventType::StandbyJoined,
                                      pair::EventType::StandbyReady,    pair::EventType::ActiveFinished,
                                      pair::EventType::ActiveStoodDown, pair::EventType::Resumed,
                                      pair::EventType::DeadlinePassed};

/// A model of some tenants, and which of them are fenced: what really is, whatever their pairs believe.
class Model {
 public:
  explicit Model(std::uint64_t seed) : random_(seed), tenants_(1 + random_() % 6), fenced_(tenants_.size()) {}

  void live() {
    const std::vector<TenantFacts> before = tenants_;
    const std::vector<bool> ready = standbys_ready();
    const Happening happening = any();
    agent::decide(tenants_, happening, effects_);
    check(before, ready);
  }

 private:
  std::size_t one() { return random_() % tenants_.size(); }
  std::string_view domain() { return domains[random_() % domains.size()]; }

  std::vector<bool> standbys_ready() const {
    std::vector<bool> all;
    for (const TenantFacts& each : tenants_) {
      all.push_back(each.pair.standby == pair::Standby::Ready || each.standby_is_warm);
    }
    return all;
  }

  void fence_in(std::string_view where) {
    for (std::size_t i = 0; i < tenants_.size(); ++i) {
      if (tenants_[i].active.is_there && tenants_[i].active.domain == where) fenced_[i] = true;
    }
  }

  /// After an exit half of the pair is there no more.
  Happening any() {
    switch (random_() % 6) {
      case 0: {
        const bool is_fence = random_() % 2 == 0;
        const std::string_view where = domain();
        if (is_fence) fence_in(where);
        return FaultSeen{where, is_fence ? pair::EventType::FenceSeen : pair::EventType::DangerSeen,
                         is_fence};
      }
      case 1:
        return DangerSeen{random_() % 2 == 0 ? domain() : std::string_view()};
      case 2:
        return ClientsLost{domain()};
      case 3:
        return exit_of(one());
      default:
        return of_one(one());
    }
  }

  Happening exit_of(std::size_t tenant) {
    TenantFacts& facts = tenants_[tenant];
    const bool is_active = random_() % 2 == 0;
    Half& half = is_active ? facts.active : facts.standby;
    if (!half.is_there) return DangerSeen{domain()};
    half.is_there = false;
    if (is_active) fenced_[tenant] = true;
    if (!is_active) facts.standby_is_warm = false;
    const auto role = is_active ? abi::Role::Active : abi::Role::Standby;
    return Exited{tenant, role, random_() % 4 == 0, random_() % 2 == 0 ? half.domain : std::string_view()};
  }

  /// Lets it happen as the agent would.
  Happening of_one(std::size_t tenant) {
    TenantFacts& facts = tenants_[tenant];
    const pair::EventType event = events_of_one[random_() % events_of_one.size()];
    const bool begins = facts.pair.phase == pair::Phase::Empty || facts.pair.phase == pair::Phase::Lost;
    const bool joins = event == pair::EventType::ActiveJoined;
    if (joins && !begins) return DangerSeen{domain()};
    if (joins) facts.active = {domain(), true};
    if (joins) fenced_[tenant] = false;
    if (event == pair::EventType::StandbyJoined) {
      if (facts.pair.standby != pair::Standby::None || facts.standby.is_there) return DangerSeen{domain()};
      facts.standby = {domain(), true};
      facts.standby_is_warm = random_() % 3 == 0 && facts.pair.phase == pair::Phase::Serving;
    }
    if (event == pair::EventType::StandbyReady) facts.standby_is_warm = false;
    const bool rests = event == pair::EventType::ActiveStoodDown;
    if (rests && !facts.active.is_there) return DangerSeen{domain()};
    if (rests && facts.pair.standby == pair::Standby::Ready) fenced_[tenant] = true;
    return OfTenant{tenant, event};
  }

  void check(const std::vector<TenantFacts>& before, const std::vector<bool>& ready) {
    std::vector<int> promotions(tenants_.size());
    for (const Promotion& each : effects_.promotions) {
      ++promotions[each.tenant];
      EXPECT_TRUE(fenced_[each.tenant]) << "a promotion without a fence";
      // Its own word may come with this very event.
      EXPECT_TRUE(ready[each.tenant] || before[each.tenant].pair.phase == pair::Phase::Orphaned)
          << "a promotion of a standby that is not ready";
      EXPECT_EQ(each.epoch, before[each.tenant].pair.epoch + 1);
      EXPECT_EQ(tenants_[each.tenant].active.domain, before[each.tenant].standby.domain);
      fenced_[each.tenant] = false;
    }
    std::vector<int> told(tenants_.size());
    for (const Told& each : effects_.told) {
      const bool is_promotion =
          each.what == Told::What::Action && each.action.type == pair::ActionType::Promote;
      if (is_promotion) ++told[each.tenant];
    }
    EXPECT_EQ(told, promotions) << "a promotion that is not told, or told without one";
    for (std::size_t i = 0; i < tenants_.size(); ++i) {
      EXPECT_LE(promotions[i], 1) << "two promotions of one event";
      // Promotions go first: an end that was decided before one would meet another process.
      if (promotions[i] == 0) continue;
      for (const pair::ActionType type : acts_of(effects_, i)) {
        EXPECT_NE(type, pair::ActionType::EndActive);
        EXPECT_NE(type, pair::ActionType::EndStandby);
        EXPECT_NE(type, pair::ActionType::EndOldActive);
      }
    }
  }

  std::mt19937_64 random_;
  std::vector<TenantFacts> tenants_;
  std::vector<bool> fenced_;
  Effects effects_;
};

TEST(DecideModel, NoneOfManyLongSequencesBreaksARule) {
  const std::uint64_t seed = test_seed();
  for (std::uint64_t run = 0; run < 5'000; ++run) {
    Model model(seed + run);
    for (int event = 0; event < 60; ++event) model.live();
    ASSERT_FALSE(testing::Test::HasFailure()) << "FIREBREAK_TEST_SEED=" << seed + run;
  }
}

}  // namespace
}  // namespace firebreak::agent
