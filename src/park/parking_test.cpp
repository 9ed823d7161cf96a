// SPDX-License-Identifier: Apache-2.0
#include "park/parking.h"

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

State after(std::initializer_list<Event> events) {
  State state;
  for (const Event& event : events) state = advance(state, event).state;
  return state;
}

std::vector<Action> last_of(std::initializer_list<Event> events) {
  State state;
  std::vector<Action> actions;
  for (const Event& event : events) {
    Step step = advance(state, event);
    state = step.state;
    actions = step.actions;
  }
  return actions;
}

TEST(Parking, TheDomainIsCondemnedAsSoonAsADumpBegins) {
  EXPECT_THAT(last_of({{EventType::ClientReady}, {EventType::DumpBegan}}),
              ElementsAre(Action::Condemn, Action::StartNameLimit));
}

TEST(Parking, TheOthersLeaveOnceTheCulpritIsKnown) {
  EXPECT_THAT(last_of({{EventType::ClientReady}, {EventType::DumpBegan}, {EventType::Named, culprit}}),
              ElementsAre(Action::StartDrainLimit, Action::Leave));
}

TEST(Parking, ALineMayComeBeforeTheDump) {
  EXPECT_THAT(last_of({{EventType::ClientReady}, {EventType::Named, culprit}}),
              ElementsAre(Action::Condemn, Action::StartDrainLimit, Action::Leave));
}

TEST(Parking, TheOthersLeaveAlsoWhereNobodyIsNamed) {
  EXPECT_THAT(last_of({{EventType::ClientReady}, {EventType::DumpBegan}, {EventType::AllDumped}}),
              ElementsAre(Action::StartDrainLimit, Action::Leave));
}

TEST(Parking, TheDomainFallsWhenEverybodyHasLeft) {
  EXPECT_THAT(last_of({{EventType::ClientReady}, {EventType::Named, culprit}, {EventType::EverybodyLeft}}),
              ElementsAre(Action::Release, Action::StartFallLimit));
}

TEST(Parking, TheDomainFallsAtTheDeadline) {
  EXPECT_THAT(last_of({{EventType::ClientReady}, {EventType::Named, culprit}, {EventType::Deadline}}),
              ElementsAre(Action::Release, Action::StartFallLimit));
}

TEST(Parking, WhereNotAllAreInTheModeItFallsAtOnce) {
  EXPECT_THAT(last_of({{EventType::ClientReady}, {EventType::BeganPartly}}),
              ElementsAre(Action::Release, Action::StartFallLimit));
}

TEST(Parking, ADomainThatDoesNotFallIsMadeTo) {
  EXPECT_THAT(last_of({{EventType::ClientReady},
                       {EventType::Named, culprit},
                       {EventType::Deadline},
                       {EventType::Deadline}}),
              ElementsAre(Action::EndClient, Action::StartFallLimit));
}

TEST(Parking, ASecondCulpritBeginsNoSecondDrain) {
  const State state =
      after({{EventType::ClientReady}, {EventType::Named, culprit}, {EventType::Named, second}});
  EXPECT_THAT(state.culprits, ElementsAre(culprit, second));
  EXPECT_THAT(
      last_of({{EventType::ClientReady}, {EventType::Named, culprit}, {EventType::Named, second}}),
      IsEmpty());
}

TEST(Parking, WithoutItsClientNothingIsHeld) {
  EXPECT_EQ(after({{EventType::DumpBegan}}).phase, Phase::Off);
  EXPECT_EQ(after({{EventType::Named, culprit}}).phase, Phase::Off);
}

/// Every history of events, as far as states differ.
class ParkingModel : public testing::Test {
 protected:
  static constexpr std::array events = {
      Event{EventType::ClientReady},  Event{EventType::ClientGone},       Event{EventType::DumpBegan},
      Event{EventType::BeganPartly},  Event{EventType::Named, culprit},   Event{EventType::Named, second},
      Event{EventType::AllDumped},    Event{EventType::EverybodyLeft},    Event{EventType::Deadline},
      Event{EventType::Fell},
  };
  /// With what actually goes on: a timer that was asked for, and whether the domain takes clients.
  struct World {
    State state;
    bool timer = false;
    bool condemned = false;
    bool operator==(const World&) const = default;
  };
  static World next(const World& world, const Event& event) {
    Step step = advance(world.state, event);
    World after{step.state, world.timer && event.type != EventType::Deadline, world.condemned};
    for (const Action action : step.actions) {
      after.timer |= action == Action::StartNameLimit || action == Action::StartDrainLimit ||
                     action == Action::StartFallLimit;
      if (action == Action::Forget) after.timer = false;
      after.condemned |= action == Action::Condemn;
    }
    if (event.type == EventType::Fell) after.condemned = false;
    return after;
  }
  template <class Visit>
  static void visit_all(const Visit& visit) {
    std::vector<World> seen = {World{}};
    for (std::size_t at = 0; at < seen.size(); ++at) {
      const World world = seen[at];
      visit(world);
      for (const Event& event : events) {
        if (event.type == EventType::Deadline && !world.timer) continue;
        const World reached = next(world, event);
        if (std::ranges::count(seen, reached) == 0) seen.push_back(reached);
      }
    }
    EXPECT_GT(seen.size(), 8U);
  }
};

TEST_F(ParkingModel, NobodyComesToADomainThatIsHeld) {
  visit_all([](const World& world) {
    const bool is_held = world.state.phase == Phase::Halted || world.state.phase == Phase::Held;
    EXPECT_TRUE(world.condemned || !is_held) << to_string(world.state.phase);
  });
}

TEST_F(ParkingModel, NobodyLeavesBeforeTheCulpritIsKnownOrNobodyWillBe) {
  visit_all([](const World& world) {
    for (const Event& event : events) {
      const Step step = advance(world.state, event);
      if (std::ranges::count(step.actions, Action::Leave) == 0) continue;
      EXPECT_TRUE(event.type == EventType::Named || event.type == EventType::AllDumped)
          << to_string(event.type);
    }
  });
}

/// If time passes and nothing else happens, the domain falls, or is made to.
TEST_F(ParkingModel, NoDomainIsHeldForEver) {
  visit_all([](const World& world) {
    World now = world;
    for (int deadline = 0; deadline < 3; ++deadline) {
      if (now.state.phase == Phase::Off || now.state.phase == Phase::Ready) return;
      ASSERT_TRUE(now.timer) << to_string(now.state.phase);
      const Step step = advance(now.state, {EventType::Deadline});
      if (std::ranges::count(step.actions, Action::EndClient) > 0) return;
      now = next(now, {EventType::Deadline});
    }
    ADD_FAILURE() << to_string(world.state.phase) << " is held for ever";
  });
}

TEST_F(ParkingModel, AfterTheFallNothingIsLeft) {
  visit_all([](const World& world) {
    const World fallen = next(world, {EventType::Fell});
    EXPECT_EQ(fallen.state, State{});
    EXPECT_TRUE(!fallen.timer || world.state.phase == Phase::Off);
  });
}

}  // namespace
}  // namespace firebreak::park
