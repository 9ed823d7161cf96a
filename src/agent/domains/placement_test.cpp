// SPDX-License-Identifier: Apache-2.0
#include "agent/domains/placement.h"

#include <gmock/gmock.h>

namespace firebreak::agent {
namespace {

using abi::Role;
using testing::HasSubstr;

const std::vector<Site> both_well = {{"a", "", true, "", 0}, {"b", "", true, "", 0}};
const std::vector<Site> a_drains = {{"a", "", false, "draining", 0}, {"b", "", true, "", 0}};
const std::vector<Site> two_gpus = {{"0a", "GPU-x1", true, "", 2},
                                    {"0b", "GPU-x1", true, "", 0},
                                    {"1a", "GPU-y2", true, "", 1},
                                    {"1b", "GPU-y2", true, "", 0}};

TEST(Placement, ActivesShareTheFirstDomainAndStandbysHaveTheOther) {
  EXPECT_EQ(choose_domain(both_well, {Role::Active, "", ""}).value(), "a");
  EXPECT_EQ(choose_domain(both_well, {Role::Standby, "", ""}).value(), "b");
  EXPECT_EQ(choose_domain(both_well, {Role::Standby, "a", ""}).value(), "b");
  EXPECT_EQ(choose_domain(both_well, {Role::Standby, "b", ""}).value(), "a");
}

TEST(Placement, AnActiveThatComesAfterItsStandbyIsNotBesideIt) {
  EXPECT_EQ(choose_domain(both_well, {Role::Active, "a", ""}).value(), "b");
}

TEST(Placement, WhatDrainsIsPassedOver) {
  EXPECT_EQ(choose_domain(a_drains, {Role::Active, "", ""}).value(), "b");
}

TEST(Placement, NeverPutsBothHalvesIntoOneDomainButSaysWhy) {
  const auto chosen = choose_domain(a_drains, {Role::Standby, "b", ""});
  ASSERT_FALSE(chosen);
  EXPECT_EQ(chosen.error().code, ErrorCode::NotYet);
  EXPECT_EQ(to_string(chosen.error()),
            "no MPS domain takes the tenant now: a is draining (try again in a moment)");
}

TEST(Placement, WhereThereIsNoSecondDomainTimeDoesNotHelp) {
  const std::vector<Site> only = {{"a", "", true, "", 0}};
  const auto chosen = choose_domain(only, {Role::Standby, "a", ""});
  ASSERT_FALSE(chosen);
  EXPECT_EQ(chosen.error().code, ErrorCode::Unavailable);
  EXPECT_EQ(to_string(chosen.error()), "no MPS domain takes the tenant now: there is no second one");
}

TEST(Placement, ActivesGoToTheGpuWithTheFewest) {
  EXPECT_EQ(choose_domain(two_gpus, {Role::Active, "", ""}).value(), "1a");
}

TEST(Placement, AWishForAGpuIsNoneOfAnAgentThatWasToldNone) {
  const std::vector<Site> any{{"a", "", true, "", 0}, {"b", "", true, "", 0}};
  EXPECT_EQ(choose_domain(any, {Role::Active, "", "GPU-z"}).value(), "a");
}

TEST(Placement, AGpuThatTheMachineDoesNotHaveIsAnErrorThere) {
  const std::vector<Site> any{{"a", "", true, "", 0}, {"b", "", true, "", 0}};
  const std::vector<std::string> there{"GPU-x1", "GPU-y2"};
  EXPECT_EQ(choose_domain(any, {Role::Active, "", "GPU-y", there}).value(), "a");
  const auto chosen = choose_domain(any, {Role::Active, "", "nonsense", there});
  ASSERT_FALSE(chosen);
  EXPECT_EQ(chosen.error().code, ErrorCode::NotFound);
  EXPECT_EQ(to_string(chosen.error()), "there is no GPU 'nonsense' (there is GPU-x1, GPU-y2)");
}

TEST(Placement, AWishedGpuIsNamedByHowItsUuidBegins) {
  EXPECT_EQ(choose_domain(two_gpus, {Role::Active, "", "GPU-x"}).value(), "0a");
  const auto none = choose_domain(two_gpus, {Role::Active, "", "GPU-z"});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::NotFound);
  EXPECT_THAT(none.error().message, HasSubstr("GPU-z"));
}

TEST(Placement, BothHalvesAreOnOneGpu) {
  EXPECT_EQ(choose_domain(two_gpus, {Role::Standby, "0a", ""}).value(), "0b");
  EXPECT_EQ(choose_domain(two_gpus, {Role::Standby, "1b", ""}).value(), "1a");
}

}  // namespace
}  // namespace firebreak::agent
