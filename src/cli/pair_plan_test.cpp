// SPDX-License-Identifier: Apache-2.0
#include "cli/pair_plan.h"

#include <gtest/gtest.h>

namespace firebreak::cli {
namespace {

constexpr const char* status = R"({"tenants": [
  {"name": "other", "phase": "lost", "standby_state": "none", "active": null, "standby": null},
  {"name": "llm", "phase": "serving", "standby_state": "ready", "active": {"pid": 7}, "standby": {"pid": 8}}]})";

TEST(PairPlan, ATenantIsReadFromTheStatus) {
  const auto llm = view_of(status, "llm");
  ASSERT_TRUE(llm);
  EXPECT_EQ(llm->phase, "serving");
  EXPECT_EQ(llm->standby_state, "ready");
  EXPECT_EQ(llm->active, 7);
  EXPECT_EQ(llm->standby, 8);
  EXPECT_EQ(view_of(status, "other")->active, 0);
}

TEST(PairPlan, WhatIsNoStatusHoldsNobody) {
  for (const char* text : {"", "[]", "7", "{}", R"({"tenants": 1})", R"({"tenants": [1, {"name": 2}]})"}) {
    EXPECT_FALSE(view_of(text, "llm")) << text;
  }
}

TEST(PairPlan, WhoServesAloneGetsAStandby) {
  EXPECT_EQ(next_move(TenantView{"serving", "none", 7, 0}, {7}), Move::StartStandby);
}

TEST(PairPlan, NobodyIsStartedBesideAnother) {
  EXPECT_EQ(next_move(TenantView{"serving", "none", 7, 8}, {7, 8}), Move::Wait) << "it has not joined yet";
  EXPECT_EQ(next_move(TenantView{"serving", "ready", 7, 8}, {7, 8}), Move::Wait);
  EXPECT_EQ(next_move(TenantView{"serving", "none", 8, 0}, {7, 8}), Move::Wait) << "the fenced one is there";
  EXPECT_EQ(next_move(TenantView{"serving", "none", 7, 8}, {7}), Move::Wait) << "its end was not seen yet";
}

TEST(PairPlan, NobodyIsStartedWhileItIsNotKnownWhoServes) {
  for (const char* phase : {"suspecting", "orphaned", "promoting"}) {
    EXPECT_EQ(next_move(TenantView{phase, "none", 7, 0}, {7}), Move::Wait) << phase;
  }
  EXPECT_EQ(next_move(TenantView{"serving", "none", 7, 0}, {}), Move::Wait) << "its end was not seen yet";
  EXPECT_EQ(next_move(TenantView{"empty", "none", 7, 0}, {7}), Move::Wait) << "it has not joined yet";
}

TEST(PairPlan, WhoHasFinishedOrNeverJoinedIsDone) {
  EXPECT_EQ(next_move(TenantView{"finished", "ready", 7, 8}, {7, 8}), Move::End);
  EXPECT_EQ(next_move(TenantView{"empty", "none", 0, 0}, {}), Move::End);
  EXPECT_EQ(next_move(std::nullopt, {}), Move::End);
}

TEST(PairPlan, WhoIsLostIsGivenUp) {
  EXPECT_EQ(next_move(TenantView{"lost", "none", 0, 0}, {}), Move::GiveUp);
  EXPECT_EQ(next_move(TenantView{"lost", "none", 0, 8}, {8}), Move::GiveUp);
}

TEST(PairPlan, WithoutAnAgentThatKnowsThemTheyGoOn) {
  EXPECT_EQ(next_move(std::nullopt, {7, 8}), Move::Wait);
}

}  // namespace
}  // namespace firebreak::cli
