// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/pair_plan.h"

#include <gtest/gtest.h>

namespace firebreak::cli {
namespace {

using link::TenantView;
using pair::Phase;
using pair::Standby;

TEST(PairPlan, WhoServesAloneGetsAStandby) {
  EXPECT_EQ(next_move(TenantView{Phase::Serving, Standby::None, 7, 0}, {7}), Move::StartStandby);
}

TEST(PairPlan, NobodyIsStartedBesideAnother) {
  EXPECT_EQ(next_move(TenantView{Phase::Serving, Standby::None, 7, 8}, {7, 8}), Move::Wait)
      << "it has not joined yet";
  EXPECT_EQ(next_move(TenantView{Phase::Serving, Standby::Ready, 7, 8}, {7, 8}), Move::Wait);
  EXPECT_EQ(next_move(TenantView{Phase::Serving, Standby::None, 8, 0}, {7, 8}), Move::Wait)
      << "the fenced one is there";
  EXPECT_EQ(next_move(TenantView{Phase::Serving, Standby::None, 7, 8}, {7}), Move::Wait)
      << "its end was not seen yet";
}

TEST(PairPlan, NobodyIsStartedWhileItIsNotKnownWhoServes) {
  for (const Phase phase : {Phase::Suspecting, Phase::Orphaned, Phase::Promoting}) {
    EXPECT_EQ(next_move(TenantView{phase, Standby::None, 7, 0}, {7}), Move::Wait) << to_string(phase);
  }
  EXPECT_EQ(next_move(TenantView{Phase::Serving, Standby::None, 7, 0}, {}), Move::Wait)
      << "its end was not seen yet";
  EXPECT_EQ(next_move(TenantView{Phase::Empty, Standby::None, 7, 0}, {7}), Move::Wait)
      << "it has not joined yet";
}

TEST(PairPlan, WhoHasFinishedOrNeverJoinedIsDone) {
  EXPECT_EQ(next_move(TenantView{Phase::Finished, Standby::Ready, 7, 8}, {7, 8}), Move::End);
  EXPECT_EQ(next_move(TenantView{Phase::Empty, Standby::None, 0, 0}, {}), Move::End);
  EXPECT_EQ(next_move(std::nullopt, {}), Move::End);
}

TEST(PairPlan, WhoIsLostIsGivenUp) {
  EXPECT_EQ(next_move(TenantView{Phase::Lost, Standby::None, 0, 0}, {}), Move::GiveUp);
  EXPECT_EQ(next_move(TenantView{Phase::Lost, Standby::None, 0, 8}, {8}), Move::GiveUp);
  EXPECT_EQ(next_move(TenantView{Phase::Lost, Standby::None, 7, 0}, {}), Move::GiveUp);
}

TEST(PairPlan, AnActiveThatGoesOnWhereItsTenantWasLostIsLeftInPeace) {
  EXPECT_EQ(next_move(TenantView{Phase::Lost, Standby::None, 7, 0}, {7}), Move::Wait)
      << "it has not joined yet";
  EXPECT_EQ(next_move(TenantView{Phase::Lost, Standby::None, 0, 0}, {7}), Move::Wait)
      << "it was not even adopted";
}

TEST(PairPlan, WhoIsMadeToWaitServesOnlyUntilAnotherIsReady) {
  EXPECT_EQ(next_move(TenantView{Phase::Serving, Standby::None, 8, 0}, {8}, {8}), Move::StartStandby);
  EXPECT_EQ(next_move(TenantView{Phase::Serving, Standby::Joined, 8, 9}, {8, 9}, {8}), Move::Wait)
      << "not ready yet";
  EXPECT_EQ(next_move(TenantView{Phase::Serving, Standby::Ready, 8, 9}, {8, 9}, {8}), Move::HandOver);
  EXPECT_EQ(next_move(TenantView{Phase::Suspecting, Standby::Ready, 8, 9}, {8, 9}, {8}), Move::Wait)
      << "it may be fenced";
  EXPECT_EQ(next_move(TenantView{Phase::Serving, Standby::Ready, 9, 8}, {8, 9}, {8}), Move::Wait)
      << "as it should be";
  EXPECT_EQ(next_move(TenantView{Phase::Serving, Standby::Ready, 8, 9}, {8, 9}, {8, 9}), Move::Wait)
      << "no better";
}

TEST(PairPlan, WithoutAnAgentThatKnowsThemTheyGoOn) {
  EXPECT_EQ(next_move(std::nullopt, {7, 8}), Move::Wait);
}

}  // namespace
}  // namespace firebreak::cli
