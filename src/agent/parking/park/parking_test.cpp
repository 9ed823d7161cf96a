// SPDX-License-Identifier: Apache-2.0
#include "agent/parking/park/parking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace firebreak::park {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr pid_t culprit = 7;
constexpr pid_t second = 8;

ParkingState after(std::initializer_list<ParkingEvent> events) {
  ParkingState state;
  for (const ParkingEvent& event : events) state = advance(state, event).state;
  return state;
}

std::vector<ParkingAction> last_of(std::initializer_list<ParkingEvent> events) {
  ParkingState state;
  std::vector<ParkingAction> actions;
  for (const ParkingEvent& event : events) {
    ParkingStep step = advance(state, event);
    state = step.state;
    actions = step.actions;
  }
  return actions;
}

TEST(Parking, TheDomainIsCondemnedAsSoonAsADumpBegins) {
  EXPECT_THAT(last_of({{ParkingEventType::ClientReady}, {ParkingEventType::DumpBegan}}),
              ElementsAre(ParkingAction::Condemn, ParkingAction::StartNameLimit));
}

TEST(Parking, TheOthersLeaveOnceTheCulpritIsKnown) {
  EXPECT_THAT(last_of({{ParkingEventType::ClientReady},
                       {ParkingEventType::DumpBegan},
                       {ParkingEventType::Named, culprit}}),
              ElementsAre(ParkingAction::StartDrainLimit, ParkingAction::Leave));
}

TEST(Parking, ALineMayComeBeforeTheDump) {
  EXPECT_THAT(last_of({{ParkingEventType::ClientReady}, {ParkingEventType::Named, culprit}}),
              ElementsAre(ParkingAction::Condemn, ParkingAction::StartDrainLimit, ParkingAction::Leave));
}

TEST(Parking, TheOthersLeaveAlsoWhereNobodyIsNamed) {
  EXPECT_THAT(
      last_of(
          {{ParkingEventType::ClientReady}, {ParkingEventType::DumpBegan}, {ParkingEventType::AllDumped}}),
      ElementsAre(ParkingAction::StartDrainLimit, ParkingAction::Leave));
}

TEST(Parking, TheDomainFallsWhenEverybodyHasLeft) {
  EXPECT_THAT(last_of({{ParkingEventType::ClientReady},
                       {ParkingEventType::Named, culprit},
                       {ParkingEventType::EverybodyLeft}}),
              ElementsAre(ParkingAction::Release, ParkingAction::StartFallLimit));
}

// The rest stand still, and are not kept waiting for the limit.
TEST(Parking, TheDomainFallsAtAMemoryFaultWhileItIsHeld) {
  EXPECT_THAT(last_of({{ParkingEventType::ClientReady},
                       {ParkingEventType::Named, culprit},
                       {ParkingEventType::MemoryFault}}),
              ElementsAre(ParkingAction::Release, ParkingAction::StartFallLimit));
  EXPECT_THAT(
      last_of(
          {{ParkingEventType::ClientReady}, {ParkingEventType::DumpBegan}, {ParkingEventType::MemoryFault}}),
      IsEmpty())
      << "it may be the exception's own, told in another way";
}

TEST(Parking, TheDomainFallsAtTheDeadline) {
  EXPECT_THAT(last_of({{ParkingEventType::ClientReady},
                       {ParkingEventType::Named, culprit},
                       {ParkingEventType::Deadline}}),
              ElementsAre(ParkingAction::Release, ParkingAction::StartFallLimit));
}

TEST(Parking, WhereNotAllAreInTheModeItFallsAtOnce) {
  EXPECT_THAT(last_of({{ParkingEventType::ClientReady}, {ParkingEventType::BeganPartly}}),
              ElementsAre(ParkingAction::Release, ParkingAction::StartFallLimit));
}

TEST(Parking, ADomainThatDoesNotFallIsMadeTo) {
  EXPECT_THAT(last_of({{ParkingEventType::ClientReady},
                       {ParkingEventType::Named, culprit},
                       {ParkingEventType::Deadline},
                       {ParkingEventType::Deadline}}),
              ElementsAre(ParkingAction::EndClient, ParkingAction::StartFallLimit));
}

TEST(Parking, ASecondCulpritBeginsNoSecondDrain) {
  const ParkingState state = after({{ParkingEventType::ClientReady},
                                    {ParkingEventType::Named, culprit},
                                    {ParkingEventType::Named, second}});
  EXPECT_THAT(state.culprits, ElementsAre(culprit, second));
  EXPECT_THAT(last_of({{ParkingEventType::ClientReady},
                       {ParkingEventType::Named, culprit},
                       {ParkingEventType::Named, second}}),
              IsEmpty());
}

// Whoever killed it.
TEST(Parking, TheDomainFallsWhenItsCulpritIsGoneAndNotWhenAnotherIs) {
  const ParkingState held = after(
      {{ParkingEventType::ClientReady}, {ParkingEventType::DumpBegan}, {ParkingEventType::Named, culprit}});
  EXPECT_THAT(advance(held, {ParkingEventType::CulpritGone, culprit}).actions,
              ElementsAre(ParkingAction::Release, ParkingAction::StartFallLimit));
  EXPECT_THAT(advance(held, {ParkingEventType::CulpritGone, second}).actions, IsEmpty());
}

TEST(Parking, WithoutItsClientNothingIsHeld) {
  EXPECT_EQ(after({{ParkingEventType::DumpBegan}}).phase, ParkingPhase::Off);
  EXPECT_EQ(after({{ParkingEventType::Named, culprit}}).phase, ParkingPhase::Off);
}

/// The model goes through every history of events, as far as states differ.
class ParkingModel : public testing::Test {
 protected:
  static constexpr std::array events = {
      ParkingEvent{ParkingEventType::ClientReady},
      ParkingEvent{ParkingEventType::ClientGone},
      ParkingEvent{ParkingEventType::DumpBegan},
      ParkingEvent{ParkingEventType::BeganPartly},
      ParkingEvent{ParkingEventType::Named, culprit},
      ParkingEvent{ParkingEventType::Named, second},
      ParkingEvent{ParkingEventType::AllDumped},
      ParkingEvent{ParkingEventType::EverybodyLeft},
      ParkingEvent{ParkingEventType::CulpritGone, culprit},
      ParkingEvent{ParkingEventType::Deadline},
      ParkingEvent{ParkingEventType::Fell},
  };
  /// The state, with what actually goes on: a timer that was asked for, and whether the domain takes clients.
  struct World {
    ParkingState state;
    bool timer = false;
    bool condemned = false;
    bool operator==(const World&) const = default;
  };
  static World next(const World& world, const ParkingEvent& event) {
    ParkingStep step = advance(world.state, event);
    World after{step.state, world.timer && event.type != ParkingEventType::Deadline, world.condemned};
    for (const ParkingAction action : step.actions) {
      after.timer |= action == ParkingAction::StartNameLimit || action == ParkingAction::StartDrainLimit ||
                     action == ParkingAction::StartFallLimit;
      if (action == ParkingAction::Forget) after.timer = false;
      after.condemned |= action == ParkingAction::Condemn;
    }
    if (event.type == ParkingEventType::Fell) after.condemned = false;
    return after;
  }
  template <class Visit>
  static void visit_all(const Visit& visit) {
    std::vector<World> seen = {World{}};
    for (std::size_t at = 0; at < seen.size(); ++at) {
      const World world = seen[at];
      visit(world);
      for (const ParkingEvent& event : events) {
        if (event.type == ParkingEventType::Deadline && !world.timer) continue;
        const World reached = next(world, event);
        if (std::ranges::count(seen, reached) == 0) seen.push_back(reached);
      }
    }
    EXPECT_GT(seen.size(), 8U);
  }
};

TEST_F(ParkingModel, NobodyComesToADomainThatIsHeld) {
  visit_all([](const World& world) {
    const bool is_held = world.state.phase == ParkingPhase::Halted || world.state.phase == ParkingPhase::Held;
    EXPECT_TRUE(world.condemned || !is_held) << to_string(world.state.phase);
  });
}

TEST_F(ParkingModel, NobodyLeavesBeforeTheCulpritIsKnownOrNobodyWillBe) {
  visit_all([](const World& world) {
    for (const ParkingEvent& event : events) {
      const ParkingStep step = advance(world.state, event);
      if (std::ranges::count(step.actions, ParkingAction::Leave) == 0) continue;
      EXPECT_TRUE(event.type == ParkingEventType::Named || event.type == ParkingEventType::AllDumped)
          << to_string(event.type);
    }
  });
}

/// The domain falls, or is made to, if time passes and nothing else happens.
TEST_F(ParkingModel, NoDomainIsHeldForEver) {
  visit_all([](const World& world) {
    World now = world;
    for (int deadline = 0; deadline < 3; ++deadline) {
      if (now.state.phase == ParkingPhase::Off || now.state.phase == ParkingPhase::Ready) return;
      ASSERT_TRUE(now.timer) << to_string(now.state.phase);
      const ParkingStep step = advance(now.state, {ParkingEventType::Deadline});
      if (std::ranges::count(step.actions, ParkingAction::EndClient) > 0) return;
      now = next(now, {ParkingEventType::Deadline});
    }
    ADD_FAILURE() << to_string(world.state.phase) << " is held for ever";
  });
}

TEST_F(ParkingModel, AfterTheFallNothingIsLeft) {
  visit_all([](const World& world) {
    const World fallen = next(world, {ParkingEventType::Fell});
    EXPECT_EQ(fallen.state, ParkingState{});
    EXPECT_TRUE(!fallen.timer || world.state.phase == ParkingPhase::Off);
  });
}

}  // namespace
}  // namespace firebreak::park
