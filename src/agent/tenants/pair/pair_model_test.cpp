// SPDX-License-Identifier: Apache-2.0
/// Tests with every sequence of events up to a length, and long random ones: the rules that no history may
/// break. The rules are checked against a ghost that remembers what really happened, not against the state
/// that the pair keeps.
#include <gtest/gtest.h>

#include <array>
#include <compare>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "agent/tenants/pair/pair.h"
#include "tests/doubles/base/test_seed.h"

namespace firebreak::pair {
namespace {

constexpr std::array all_events = {
    EventType::ActiveJoined,    EventType::StandbyJoined, EventType::StandbyReady,
    EventType::StandbyExited,   EventType::ActiveExited,  EventType::ActiveFinished,
    EventType::ActiveStoodDown, EventType::DangerSeen,    EventType::FenceSeen,
    EventType::ContextLost,     EventType::Resumed,       EventType::DeadlinePassed};

std::vector<std::string> names(const std::vector<EventType>& history) {
  std::vector<std::string> all;
  for (EventType event : history) all.emplace_back(to_string(event));
  return all;
}

std::uint64_t printed_seed() {
  const std::uint64_t seed = test_seed();
  return seed;
}

/// The truth, whatever the pair believes.
struct Ghost {
  bool joined = false;  ///< an active is or was there
  bool fenced = false;  ///< there is proof since the last promotion that the active can write no more
  bool finished = false;
  bool lost = false;  ///< was told, and nobody has begun anew
  bool standby_there = false;
  bool standby_ready = false;
  bool context_lost = false;  ///< the active's, or what was lost was
  friend auto operator<=>(const Ghost&, const Ghost&) = default;

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
      case EventType::ContextLost:
        context_lost = true;
        break;
      case EventType::ActiveStoodDown:
        fenced = fenced || (joined && standby_ready);  // else it goes on itself
        break;
      default:
        break;
    }
  }
};

/// An action leaves empty what it does not need: that has no second meaning.
bool says_too_much(const Action& action) {
  const bool has_epoch = action.type == ActionType::Promote || action.type == ActionType::BeginEpoch;
  const bool has_reason = action.type == ActionType::TellLost || action.type == ActionType::TellWaiting;
  const bool is_timer = action.type == ActionType::StartDeadline;
  return (action.epoch != 0 && !has_epoch) || action.reason.empty() == has_reason ||
         (action.deadline_ms > 0) != is_timer;
}

/// The first rule that an action breaks, or nothing.
std::string broken_by(Ghost& ghost, const State& before, const Action& action) {
  if (says_too_much(action)) return "an action with what it does not need, or without what it does";
  if (action.type == ActionType::EndOldActive)
    return {};  // an old active may be ended at any time: it is
                // fenced
  if (ghost.finished) return "an action after the end";
  switch (action.type) {
    case ActionType::Promote:
      if (!ghost.fenced) return "a promotion without a fence";
      if (!ghost.standby_ready) return "a promotion of a standby that is not ready";
      if (action.epoch != before.epoch + 1) return "an epoch that is not the next one";
      ghost.fenced = ghost.standby_ready = ghost.standby_there = ghost.context_lost = false;
      return {};
    case ActionType::EndActive:
      if (!ghost.context_lost) return "the end of an active that can work";
      return ghost.standby_ready ? "" : "the end of an active whom nobody follows";
    case ActionType::BeginEpoch:
      if (!ghost.lost) return "a new beginning of what was not lost";
      if (action.epoch != before.epoch + 1) return "an epoch that is not the next one";
      ghost.fenced = ghost.lost = ghost.context_lost = false;
      return {};
    case ActionType::TellLost:
      if (action.reason.empty()) return "a loss without a reason";
      if (ghost.standby_ready) return "a loss though a standby was ready";
      if (ghost.lost) return "a loss told twice";
      ghost.lost = true;
      return {};
    case ActionType::TellProtected:
      return ghost.standby_ready ? "" : "protection by nobody";
    case ActionType::EndStandby:
      if (ghost.standby_ready || !ghost.fenced) return "the end of a standby that is needed";
      ghost.standby_there = false;
      return {};
    case ActionType::TellWaiting:
      return action.reason.empty() ? "a wait for nobody knows what" : "";
    default:
      return {};
  }
}

/// The first rule that the transition breaks, or nothing.
std::string broken_rule(Ghost& ghost, const State& before, EventType event, const Step& step) {
  ghost.see(event);
  std::uint32_t epochs = 0;
  for (const Action& action : step.actions) {
    if (const std::string rule = broken_by(ghost, before, action); !rule.empty()) return rule;
    epochs += action.type == ActionType::Promote || action.type == ActionType::BeginEpoch ? 1 : 0;
  }
  if (step.state.epoch != before.epoch + epochs) return "an epoch without its promotion";
  if ((step.state.phase == Phase::Lost) != ghost.lost) return "a silent loss";
  const bool serves = step.state.phase == Phase::Serving || step.state.phase == Phase::Suspecting;
  if (ghost.fenced && !ghost.finished && serves) return "serving on with a fenced active";
  ghost.finished = ghost.finished || step.state.phase == Phase::Finished;
  return {};
}

/// Returns whether the agent lets that happen: one active at a time, and nobody joins a lost tenant but a new
/// active.
bool may_happen(const State& state, EventType event) {
  if (event == EventType::ActiveJoined) return state.phase == Phase::Empty || state.phase == Phase::Lost;
  if (event == EventType::StandbyJoined) return state.phase != Phase::Lost;
  if (event == EventType::ActiveStoodDown) {
    return state.phase == Phase::Serving || state.phase == Phase::Suspecting ||
           state.phase == Phase::Promoting;
  }
  return true;
}

/// An epoch only counts up: what may follow does not depend on it.
using Situation = std::tuple<Phase, Standby, Ghost>;

/// Sequences that lead to the same situation go on alike, so that one of them stands for all.
TEST(PairModel, NoSequenceOfEightEventsBreaksARule) {
  std::map<Situation, std::vector<EventType>> reached = {{{Phase::Empty, Standby::None, Ghost{}}, {}}};
  for (int length = 1; length <= 8; ++length) {
    std::map<Situation, std::vector<EventType>> next;
    for (const auto& [situation, history] : reached) {
      for (EventType event : all_events) {
        State state;
        std::tie(state.phase, state.standby, std::ignore) = situation;
        if (!may_happen(state, event)) continue;
        Ghost ghost = std::get<Ghost>(situation);
        const Step step = advance(state, event);
        std::vector<EventType> longer = history;
        longer.push_back(event);
        const std::string rule = broken_rule(ghost, state, event, step);
        ASSERT_EQ(rule, "") << "after " << testing::PrintToString(names(longer));
        next.try_emplace({step.state.phase, step.state.standby, ghost}, std::move(longer));
      }
    }
    reached = std::move(next);
  }
  EXPECT_GT(reached.size(), 20u);
}

TEST(PairModel, NoneOfAMillionLongSequencesBreaksARule) {
  const std::uint64_t seed = printed_seed();
  for (std::uint64_t run = 0; run < 1'000'000; ++run) {
    std::mt19937_64 random(seed + run);
    State state;
    Ghost ghost;
    std::vector<EventType> history;
    for (std::uint64_t left = 9 + random() % 24; left > 0; --left) {
      const EventType event = all_events[random() % all_events.size()];
      if (!may_happen(state, event)) continue;
      history.push_back(event);
      const Step step = advance(state, event);
      const std::string rule = broken_rule(ghost, state, event, step);
      ASSERT_EQ(rule, "") << "FIREBREAK_TEST_SEED=" << seed + run << ", after "
                          << testing::PrintToString(names(history));
      state = step.state;
    }
  }
}

/// The knowledge of an onlooker who sees each action, and the clock: where a pair stands still for good.
struct Life {
  State state;
  bool deadline = false;        ///< a timer runs
  bool operator_knows = false;  ///< the operator knows what the pair waits for
  bool told_lost = false;
  bool old_active = false;  ///< one was fenced, and may hang; nobody has ended it

  void act(const Step& step) {
    if (step.state.phase != state.phase) operator_knows = false;
    if (step.state.phase != Phase::Lost) told_lost = false;
    state = step.state;
    for (const Action& action : step.actions) {
      deadline |= action.type == ActionType::StartDeadline && action.deadline_ms > 0;
      operator_knows |= action.type == ActionType::TellWaiting && !action.reason.empty();
      told_lost |= action.type == ActionType::TellLost;
      if (action.type == ActionType::Promote) old_active = true;
      if (action.type == ActionType::EndOldActive) old_active = false;
    }
  }
  void see(EventType event) {
    if (event == EventType::DeadlinePassed) deadline = false;
    act(advance(state, event));
  }
  /// Goes on as another agent from what this one kept.
  void restart_agent() {
    deadline = operator_knows = told_lost = false;
    act(resume(state));
  }
  /// Returns what is not as it should be where nothing more happens.
  std::string unsettled() const {
    if (old_active) return "a fenced active that hangs is never ended";
    switch (state.phase) {
      case Phase::Empty:
      case Phase::Serving:
      case Phase::Finished:
        return {};
      case Phase::Lost:
        return told_lost ? "" : "lost, and nobody was told";
      default:
        return operator_knows ? "" : "waits for ever, and nobody was told";
    }
  }
  auto key() const {
    return std::tuple(state.phase, state.standby, deadline, operator_knows, told_lost, old_active);
  }
};

using Lives = std::map<decltype(Life().key()), std::pair<Life, std::vector<std::string>>>;

/// Returns all lives that can come about, each with how.
Lives all_lives() {
  Lives reached = {{Life().key(), {Life(), {}}}};
  std::deque<Life> open = {Life()};
  for (; !open.empty(); open.pop_front()) {
    const Life before = open.front();
    const auto add = [&](Life life, const char* how) {
      std::vector<std::string> longer = reached.at(before.key()).second;
      longer.emplace_back(how);
      life.state.epoch = 0;
      if (reached.try_emplace(life.key(), life, std::move(longer)).second) open.push_back(life);
    };
    for (const EventType event : all_events) {
      if (!may_happen(before.state, event)) continue;
      if (event == EventType::DeadlinePassed && !before.deadline) continue;
      Life after = before;
      after.see(event);
      add(after, to_string(event));
    }
    Life after = before;
    after.restart_agent();
    add(after, "another agent");
  }
  return reached;
}

/// The liveness rule: where time passes and nothing else happens, the pair comes to serve, or has told that
/// it is lost, or waits for somebody who was told. From every state that can come about.
TEST(PairModel, NothingWaitsForEverUnlessSomebodyWasTold) {
  const Lives lives = all_lives();
  EXPECT_GT(lives.size(), 30u);
  std::set<std::string> found;
  for (const auto& [key, reached] : lives) {
    Life life = reached.first;
    for (int deadlines = 0; life.deadline && deadlines < 10; ++deadlines) life.see(EventType::DeadlinePassed);
    const std::string wrong = life.deadline ? "a timer without end" : life.unsettled();
    if (wrong.empty() || !found.insert(to_string(life.state.phase) + (": " + wrong)).second) continue;
    ADD_FAILURE() << to_string(life.state.phase) << ": " << wrong << ", after "
                  << testing::PrintToString(reached.second);
  }
}

/// An agent that goes on from what another one kept leaves the state as it was, and repeats at most what was
/// done.
TEST(PairModel, ResumingChangesNothingThatCounts) {
  for (Phase phase : {Phase::Empty, Phase::Serving, Phase::Suspecting, Phase::Orphaned, Phase::Promoting,
                      Phase::Lost, Phase::Finished}) {
    const State kept{phase, Standby::Joined, 7};
    const Step step = resume(kept);
    EXPECT_EQ(step.state, kept) << to_string(phase);
    for (const Action& action : step.actions) {
      EXPECT_TRUE(action.type != ActionType::Promote || action.epoch == kept.epoch);
      EXPECT_TRUE(action.type != ActionType::TellLost || phase == Phase::Lost);
    }
  }
}

TEST(PairModel, WhatAnAgentHadBegunIsBegunAgain) {
  using enum ActionType;
  using Types = std::vector<ActionType>;
  const auto begun = [](Phase phase) {
    Types types;
    for (const Action& action : resume({phase, Standby::None, 7}).actions) {
      types.push_back(action.type);
      EXPECT_FALSE(says_too_much(action)) << to_string(phase) << ": " << to_string(action.type);
    }
    return types;
  };
  EXPECT_EQ(begun(Phase::Empty), Types{});
  EXPECT_EQ(begun(Phase::Serving), (Types{StartDeadline}));
  EXPECT_EQ(begun(Phase::Suspecting), (Types{StartDeadline}));
  EXPECT_EQ(begun(Phase::Orphaned), (Types{StartDeadline}));
  EXPECT_EQ(begun(Phase::Promoting), (Types{Promote, StartDeadline}));
  EXPECT_EQ(begun(Phase::Lost), (Types{TellLost, EndStandby, StartDeadline}));
  EXPECT_EQ(begun(Phase::Finished), (Types{DismissStandby, StartDeadline}));
}

}  // namespace
}  // namespace firebreak::pair
