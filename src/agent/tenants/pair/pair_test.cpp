// SPDX-License-Identifier: Apache-2.0
/// The stories of a pair, one after another, as an operator would tell them.
#include "agent/tenants/pair/pair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>

namespace firebreak::pair {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Plays events from the start and keeps every action type.
struct Story {
  State state;
  std::vector<ActionType> actions;
  std::string reason;

  Story(std::initializer_list<EventType> events) {
    for (EventType event : events) then(event);
  }
  Story& then(EventType event) {
    Step step = advance(state, event);
    state = step.state;
    for (const Action& action : step.actions) {
      actions.push_back(action.type);
      if (!action.reason.empty()) reason = action.reason;
    }
    return *this;
  }
};

using enum EventType;

TEST(Pair, ASmFaultPromotesAReadyStandbyAtTheXidLine) {
  Story story{ActiveJoined, StandbyJoined, StandbyReady, FenceSeen};
  EXPECT_EQ(story.state.phase, Phase::Promoting);
  EXPECT_EQ(story.state.epoch, 1u);
  EXPECT_THAT(story.actions,
              ElementsAre(ActionType::TellProtected, ActionType::Promote, ActionType::StartDeadline));
}

TEST(Pair, AnActiveThatStandsDownHandsOverToWhoIsReadyAndToNobodyElse) {
  for (const auto& events : {std::initializer_list<EventType>{ActiveJoined},
                             {ActiveJoined, StandbyJoined},
                             {ActiveJoined, StandbyJoined, StandbyReady, StandbyExited}}) {
    Story alone(events);
    alone.then(ActiveStoodDown);
    EXPECT_EQ(alone.state.phase, Phase::Serving);
    EXPECT_EQ(alone.state.epoch, 0u);
  }
  Story story{ActiveJoined, StandbyJoined, StandbyReady, ActiveStoodDown};
  EXPECT_EQ(story.state.phase, Phase::Promoting);
  EXPECT_EQ(story.state.epoch, 1u);
  story.then(StandbyJoined)
      .then(StandbyReady)
      .then(Resumed)
      .then(ActiveStoodDown);  // it moves there and back
  EXPECT_EQ(story.state.phase, Phase::Promoting);
  EXPECT_EQ(story.state.epoch, 2u);
}

TEST(Pair, AUvmEventAloneIsNoFence) {
  Story story{ActiveJoined, StandbyJoined, StandbyReady, DangerSeen};
  EXPECT_EQ(story.state.phase, Phase::Suspecting);
  EXPECT_THAT(story.actions, ElementsAre(ActionType::TellProtected, ActionType::StartDeadline));
  story.then(FenceSeen);
  EXPECT_EQ(story.state.phase, Phase::Promoting);
}

TEST(Pair, ANeighbourThatDiesWithoutHarmChangesNothing) {
  Story story{ActiveJoined, StandbyJoined, StandbyReady, DangerSeen, DeadlinePassed};
  EXPECT_EQ(story.state.phase, Phase::Serving);
  EXPECT_EQ(story.state.epoch, 0u);
  EXPECT_EQ(story.state.standby, Standby::Ready);
}

TEST(Pair, ANeighbourThatTakesTheDomainAlongLeadsToAPromotion) {
  Story story{ActiveJoined, StandbyJoined, StandbyReady, DangerSeen, ActiveExited};
  EXPECT_EQ(story.state.phase, Phase::Promoting);
}

TEST(Pair, ADangerSeenTwicePromotesOnce) {
  Story story{ActiveJoined, StandbyJoined, StandbyReady, FenceSeen};
  story.then(Resumed).then(DeadlinePassed);
  EXPECT_EQ(story.state.epoch, 1u);
  EXPECT_EQ(story.state.phase, Phase::Serving);
  EXPECT_THAT(story.actions,
              ElementsAre(ActionType::TellProtected, ActionType::Promote, ActionType::StartDeadline,
                          ActionType::StartDeadline, ActionType::TellUnprotected, ActionType::EndOldActive));
}

TEST(Pair, ASlowSuccessorDoesNotKeepTheOldActiveAlive) {
  Story story{ActiveJoined, StandbyJoined, StandbyReady, FenceSeen, DeadlinePassed};
  EXPECT_THAT(story.actions, testing::Contains(ActionType::EndOldActive));
  EXPECT_EQ(story.state.phase, Phase::Promoting);
  EXPECT_EQ(story.actions.back(), ActionType::TellWaiting);
  EXPECT_EQ(story.reason, "the promoted process has not begun its work yet");
}

TEST(Pair, AnOldActiveThatHangsIsEndedThoughASuspicionCameInBetween) {
  Story story{ActiveJoined, StandbyJoined, StandbyReady, FenceSeen, Resumed, DangerSeen};
  EXPECT_THAT(story.actions, testing::Not(testing::Contains(ActionType::EndOldActive)));
  story.then(DeadlinePassed);
  EXPECT_EQ(story.actions.back(), ActionType::EndOldActive);
}

TEST(Pair, AnOldActiveThatHangsIsEndedThoughItsTenantIsLostOrHasFinished) {
  for (const EventType end : {ActiveExited, ActiveFinished}) {
    Story story{ActiveJoined, StandbyJoined, StandbyReady, FenceSeen, end, DeadlinePassed};
    EXPECT_EQ(story.actions.back(), ActionType::EndOldActive) << to_string(end);
  }
}

TEST(Pair, AStandbyThatIsNeverReadyIsWaitedForAMinute) {
  Story story{ActiveJoined, StandbyJoined, FenceSeen, DeadlinePassed};
  EXPECT_EQ(story.state, (State{Phase::Lost, Standby::None, 0}));
  EXPECT_THAT(story.actions, ElementsAre(ActionType::StartDeadline, ActionType::EndStandby,
                                         ActionType::EndOldActive, ActionType::TellLost));
  EXPECT_EQ(story.reason, "the active ended, and its standby was not ready a minute later");
  static_assert(orphaned_ms == 60'000);
}

TEST(Pair, ASuccessorThatLostItsContextBeforeItBeganIsFollowedByTheNextOne) {
  Story story{ActiveJoined, StandbyJoined, StandbyReady, FenceSeen};
  EXPECT_THAT(advance(story.state, ContextLost).actions, IsEmpty());
  story.then(StandbyJoined).then(StandbyReady).then(ContextLost);
  EXPECT_EQ(story.actions.back(), ActionType::EndActive);
}

TEST(Pair, AStandbyThatIsStillStartingTakesOverWhenItIsReady) {
  Story story{ActiveJoined, StandbyJoined, FenceSeen};
  EXPECT_EQ(story.state.phase, Phase::Orphaned);
  story.then(StandbyReady);
  EXPECT_EQ(story.state.phase, Phase::Promoting);
  EXPECT_EQ(story.state.epoch, 1u);
}

TEST(Pair, AFaultWithoutAStandbyIsSaidAtOnceWithTheReason) {
  Story story{ActiveJoined, FenceSeen};
  EXPECT_EQ(story.state.phase, Phase::Lost);
  EXPECT_EQ(story.reason, "the active ended and it had no standby");
}

TEST(Pair, BothDyingIsALossWithItsReason) {
  Story story{ActiveJoined, StandbyJoined, ActiveExited, StandbyExited};
  EXPECT_EQ(story.state.phase, Phase::Lost);
  EXPECT_EQ(story.reason, "the standby ended before it was ready to take over");
}

TEST(Pair, AStandbyThatDiesLeavesTheTenantUnprotectedAndCanBeReplaced) {
  Story story{ActiveJoined, StandbyJoined, StandbyReady, StandbyExited};
  EXPECT_THAT(story.actions, ElementsAre(ActionType::TellProtected, ActionType::TellUnprotected));
  story.then(StandbyJoined).then(StandbyReady).then(FenceSeen);
  EXPECT_EQ(story.state.phase, Phase::Promoting);
}

TEST(Pair, APromotedStandbyThatDiesHandsOverToTheNextOne) {
  Story story{ActiveJoined,  StandbyJoined, StandbyReady, FenceSeen,
              StandbyJoined, StandbyReady,  ActiveExited};
  EXPECT_EQ(story.state.phase, Phase::Promoting);
  EXPECT_EQ(story.state.epoch, 2u);
}

TEST(Pair, ATenantThatFinishesDismissesItsStandby) {
  Story story{ActiveJoined, StandbyJoined, StandbyReady, ActiveFinished};
  EXPECT_EQ(story.state.phase, Phase::Finished);
  EXPECT_THAT(story.actions, ElementsAre(ActionType::TellProtected, ActionType::DismissStandby));
  EXPECT_THAT(advance(story.state, FenceSeen).actions, IsEmpty());
}

TEST(Pair, ALostTenantCanBeginAnewWhereItStopped) {
  Story story{ActiveJoined, StandbyJoined, StandbyReady, FenceSeen, ActiveExited};
  EXPECT_EQ(story.state.phase, Phase::Lost);
  story.then(ActiveJoined);
  EXPECT_EQ(story.state.phase, Phase::Serving);
  EXPECT_EQ(story.state.epoch, 2u);
  EXPECT_EQ(story.actions.back(), ActionType::BeginEpoch);
}

TEST(Pair, AnActiveThatOnlySeemedToHaveFaultedCanBecomeTheStandby) {
  Story story{ActiveJoined, StandbyJoined, StandbyReady, FenceSeen, Resumed, StandbyJoined, StandbyReady};
  EXPECT_EQ(story.state.standby, Standby::Ready);
  story.then(ActiveExited);
  EXPECT_EQ(story.state.phase, Phase::Promoting);
  EXPECT_EQ(story.state.epoch, 2u);
}

TEST(Pair, WhoHasLostItsContextIsEndedWhereSomebodyFollows) {
  Story story{ActiveJoined, StandbyJoined, StandbyReady, ContextLost};
  EXPECT_EQ(story.state.phase, Phase::Suspecting);
  EXPECT_THAT(story.actions, testing::Contains(ActionType::EndActive));
  EXPECT_THAT(story.actions, testing::Not(testing::Contains(ActionType::Promote)));
  story.then(ActiveExited);
  EXPECT_EQ(story.state.phase, Phase::Promoting);

  Story alone{ActiveJoined, StandbyJoined, ContextLost};
  EXPECT_THAT(alone.actions, testing::Not(testing::Contains(ActionType::EndActive)));
  Story suspected{ActiveJoined, StandbyJoined, StandbyReady, DangerSeen, ContextLost};
  // A signal that is heard twice does not put off the suspicion's end.
  EXPECT_THAT(suspected.actions,
              ElementsAre(ActionType::TellProtected, ActionType::StartDeadline, ActionType::EndActive));
}

TEST(Pair, OnlyAnXidOfTheWholeGroupIsAFence) {
  using fault::FaultClass;
  using fault::FaultSource;
  auto event = [](FaultSource source, FaultClass fault_class, const char* place = "") {
    fault::Fault fault;
    fault.source = source;
    fault.fault_class = fault_class;
    fault.place = place;
    return event_of(fault);
  };
  EXPECT_EQ(event(FaultSource::Xid, FaultClass::Sm), FenceSeen);
  fault::Fault of_running_sm;
  of_running_sm.source = FaultSource::Xid;
  of_running_sm.fault_class = FaultClass::Sm;
  of_running_sm.xid = 13;
  EXPECT_EQ(event_of(of_running_sm), DangerSeen);
  EXPECT_EQ(event(FaultSource::Xid, FaultClass::MmuReplayable), FenceSeen);
  // A copy engine's fault was seen to end its own client alone, one of the group's own PBDMA all of them.
  EXPECT_EQ(event(FaultSource::Xid, FaultClass::MmuNonReplayable, "CE2 HUBCLIENT_CE0"), DangerSeen);
  EXPECT_EQ(event(FaultSource::Xid, FaultClass::MmuNonReplayable, "GR0_PBDMA1 HUBCLIENT_ESC"), FenceSeen);
  EXPECT_EQ(event(FaultSource::UvmEvent, FaultClass::MmuNonReplayable, "GR0_PBDMA1 HUBCLIENT_ESC"),
            DangerSeen);
  EXPECT_EQ(event(FaultSource::Xid, FaultClass::Termination), DangerSeen);
  EXPECT_EQ(event(FaultSource::UvmEvent, FaultClass::MmuReplayable), DangerSeen);
  EXPECT_EQ(event(FaultSource::ProcessExit, FaultClass::Termination), DangerSeen);
}

}  // namespace
}  // namespace firebreak::pair
