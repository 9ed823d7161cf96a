// SPDX-License-Identifier: Apache-2.0
/// Every sequence of events up to a length, and long random ones: the rules that no history may break. The
/// rules are checked against a ghost that remembers what really happened, not against the state that the pair
/// keeps.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <iostream>
#include <random>
#include <sstream>

#include "pair/pair.h"

namespace firebreak::pair {
namespace {

constexpr std::array all_events = {
    EventType::ActiveJoined, EventType::StandbyJoined,  EventType::StandbyReady, EventType::StandbyExited,
    EventType::ActiveExited, EventType::ActiveFinished, EventType::DangerSeen,   EventType::FenceSeen,
    EventType::Resumed,      EventType::DeadlinePassed};

/// What has truly happened, whatever the pair believes.
struct Ghost {
  bool joined = false;  ///< an active is or was there
  bool fenced = false;  ///< since the last promotion, proof that the active can write no more
  bool over = false;    ///< finished or lost was told
  bool standby_there = false;
  bool standby_ready = false;

  void see(EventType event) {
    switch (event) {
      case EventType::ActiveJoined:
        joined = true;
        break;
      case EventType::StandbyJoined:
        standby_there = true;
        break;
      case EventType::StandbyReady:
        standby_ready = standby_there;
        break;
      case EventType::StandbyExited:
        standby_there = standby_ready = false;
        break;
      case EventType::ActiveExited:
      case EventType::FenceSeen:
        fenced = fenced || joined;
        break;
      default:
        break;
    }
  }
};

/// The first rule that the transition breaks, or nothing.
std::string broken_rule(Ghost& ghost, const State& before, EventType event, const Step& step) {
  ghost.see(event);
  std::uint32_t promotions = 0;
  bool told_lost = false;
  for (const Action& action : step.actions) {
    if (ghost.over) return "an action after the end";
    if (action.type == ActionType::Promote) {
      ++promotions;
      if (!ghost.fenced) return "a promotion without a fence";
      if (!ghost.standby_ready) return "a promotion of a standby that is not ready";
      if (action.epoch != before.epoch + 1) return "an epoch that is not the next one";
      ghost.fenced = ghost.standby_ready = ghost.standby_there = false;
    }
    if (action.type == ActionType::TellLost) {
      told_lost = true;
      if (action.reason.empty()) return "a loss without a reason";
      if (ghost.standby_ready) return "a loss though a standby was ready";
    }
  }
  if (step.state.epoch != before.epoch + promotions) return "an epoch without its promotion";
  if ((step.state.phase == Phase::Lost) != (before.phase == Phase::Lost || told_lost)) return "a silent loss";
  if (ghost.fenced && ghost.joined && !ghost.over && before.phase != Phase::Empty &&
      (step.state.phase == Phase::Serving || step.state.phase == Phase::Suspecting)) {
    return "serving on with a fenced active";
  }
  ghost.over = step.state.phase == Phase::Lost || step.state.phase == Phase::Finished;
  return {};
}

void check_all(const State& state, const Ghost& ghost, std::vector<EventType>& history, int depth_left) {
  if (depth_left == 0) return;
  for (EventType event : all_events) {
    // An active joins once; the agent makes nobody active but by promotion after that.
    if (event == EventType::ActiveJoined && state.phase != Phase::Empty) continue;
    Ghost next_ghost = ghost;
    if (!next_ghost.joined && event != EventType::ActiveJoined && event != EventType::StandbyJoined) continue;
    const Step step = advance(state, event);
    history.push_back(event);
    const std::string rule = broken_rule(next_ghost, state, event, step);
    if (!rule.empty()) {
      std::ostringstream text;
      for (EventType past : history) text << to_string(past) << ", ";
      FAIL() << rule << " after: " << text.str();
    }
    check_all(step.state, next_ghost, history, depth_left - 1);
    history.pop_back();
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(PairModel, NoSequenceOfSixEventsBreaksARule) {
  std::vector<EventType> history;
  check_all(State{}, Ghost{}, history, 6);
}

TEST(PairModel, NoLongRandomSequenceBreaksARule) {
  const char* given = std::getenv("FIREBREAK_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::cout << "seed " << seed << " (replay: FIREBREAK_TEST_SEED=" << seed << ")\n";
  std::mt19937_64 random(seed);
  for (int run = 0; run < 2000; ++run) {
    State state = advance(State{}, EventType::ActiveJoined).state;
    Ghost ghost;
    ghost.joined = true;
    for (int length = 0; length < 60; ++length) {
      const EventType event = all_events[1 + random() % (all_events.size() - 1)];
      const Step step = advance(state, event);
      const std::string rule = broken_rule(ghost, state, event, step);
      ASSERT_EQ(rule, "") << "seed " << seed << ", run " << run << ", event " << to_string(event) << " in "
                          << to_string(state.phase);
      state = step.state;
    }
  }
}

}  // namespace
}  // namespace firebreak::pair
