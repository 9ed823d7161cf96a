// SPDX-License-Identifier: Apache-2.0
#include "commands/k8s/offer_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace firebreak::k8s {
namespace {

using testing::ElementsAre;
using testing::FieldsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class OfferKeeperTest : public testing::Test {
 protected:
  FakeClock clock;
  OfferRules rules() {
    OfferRules made;
    made.agent_socket = "/run/firebreak/status.sock";
    made.check_directory = [this](const seats::SeatDomain& domain) {
      return domain.name == false_domain ? fail(ErrorCode::PermissionDenied, "it is a link") : Status();
    };
    made.seats_of_domain = 2;
    made.agent_patience = std::chrono::seconds(30);
    made.guard_library = "/guard.so";
    made.shared_memory = "/dev/shm";
    return made;
  }
  std::string false_domain;
  OfferKeeper keeper{rules()};
  link::StatusView status;

  OfferKeeperTest() {
    status.tenants_socket = "/run/firebreak/tenants.sock";
    status.domains = {{"a", "GPU-1", "serving"}, {"b", "GPU-1", "serving"}};
  }
  bool said() { return keeper.agent_said(status, clock.now()); }
  bool away() { return keeper.agent_is_away(clock.now()); }
  std::vector<std::string> healthy() {
    std::vector<std::string> ids;
    for (const OfferedSeat& seat : keeper.offer()->seats) {
      if (seat.is_healthy) ids.push_back(seat.id);
    }
    return ids;
  }
};

TEST_F(OfferKeeperTest, EachDomainHasSoManySeats) {
  EXPECT_TRUE(said());
  EXPECT_THAT(
      keeper.offer()->seats,
      ElementsAre(FieldsAre("a-1", "a", "GPU-1", true, false), FieldsAre("a-2", "a", "GPU-1", true, false),
                  FieldsAre("b-1", "b", "GPU-1", true, false), FieldsAre("b-2", "b", "GPU-1", true, false)));
  EXPECT_EQ(keeper.offer()->common.tenants_socket, "/run/firebreak/tenants.sock");
  EXPECT_EQ(keeper.offer()->common.guard_library, "/guard.so");
  EXPECT_EQ(keeper.offer()->common.shared_memory, "/dev/shm");
  EXPECT_FALSE(said()) << "nothing is new";
}

TEST_F(OfferKeeperTest, SeatsAreHealthyByTheirDomainAndAgainOnceItServes) {
  said();
  for (const char* state : {"draining", "restarting", "silent", "gpu_failed", "of a later version"}) {
    status.domains[0].state = state;
    EXPECT_TRUE(said()) << state;
    EXPECT_THAT(healthy(), ElementsAre("b-1", "b-2")) << state;
    EXPECT_THAT(keeper.described(),
                HasSubstr(std::string("2 of 4 seats are healthy: not those of a (") + state));
    status.domains[0].state = "serving";
    EXPECT_TRUE(said()) << state;
    EXPECT_THAT(healthy(), ElementsAre("a-1", "a-2", "b-1", "b-2")) << state;
  }
}

TEST_F(OfferKeeperTest, SeatsOfAGpuThatHasFailedSayIt) {
  status.domains[1].state = "gpu_failed";
  status.domains[1].gpu_needs = "its GPU needs a reset (Xid 95, RESET_GPU)";
  said();
  for (const OfferedSeat& seat : keeper.offer()->seats) {
    EXPECT_EQ(seat.gpu_failed, seat.domain == "b") << seat.id;
    EXPECT_EQ(seat.is_healthy, seat.domain == "a") << seat.id;
  }
}

TEST_F(OfferKeeperTest, WhatIsHeldTakesNobodyThoughItsDomainServes) {
  for (const char* state : {"ready", "off"}) {
    status.parking["a"] = {state, {}};
    said();
    EXPECT_THAT(healthy(), ElementsAre("a-1", "a-2", "b-1", "b-2")) << state;
  }
  for (const char* state : {"halted", "held", "released"}) {
    status.parking["a"] = {state, {}};
    said();
    EXPECT_THAT(healthy(), ElementsAre("b-1", "b-2")) << state;
    EXPECT_THAT(keeper.described(), HasSubstr("a (parked)"));
  }
}

TEST_F(OfferKeeperTest, AnAgentThatIsAwayChangesNothingBeforeItsTimeIsUp) {
  said();
  clock.advance(std::chrono::seconds(29));
  EXPECT_FALSE(away());
  EXPECT_THAT(healthy(), ElementsAre("a-1", "a-2", "b-1", "b-2"));
  clock.advance(std::chrono::seconds(1));
  EXPECT_TRUE(away());
  EXPECT_THAT(healthy(), IsEmpty());
  EXPECT_EQ(keeper.offer()->seats.size(), 4u) << "whose containers run on";
  EXPECT_THAT(keeper.described(), HasSubstr("the agent does not answer"));
  EXPECT_FALSE(away());
  EXPECT_TRUE(said());
  EXPECT_THAT(healthy(), ElementsAre("a-1", "a-2", "b-1", "b-2"));
  clock.advance(std::chrono::seconds(29));
  EXPECT_FALSE(away()) << "its time begins with its last word";
}

TEST_F(OfferKeeperTest, AnAgentThatWasNeverThereOffersNothing) {
  clock.advance(std::chrono::hours(1));
  EXPECT_FALSE(away());
  EXPECT_THAT(keeper.offer()->seats, IsEmpty());
  EXPECT_EQ(keeper.described(), "no agent is known");
}

TEST_F(OfferKeeperTest, ADomainThatIsGoneAndOneWithAnOddNameHaveNoSeats) {
  said();
  status.domains = {{"b", "GPU-1", "serving"}, {"c/d", "GPU-1", "serving"}};
  EXPECT_TRUE(said());
  EXPECT_THAT(healthy(), ElementsAre("b-1", "b-2"));
}

// An agent that was taken over gets no file of its choice mounted.
TEST_F(OfferKeeperTest, WhereTheTenantsSocketLiesElsewhereNothingIsOffered) {
  said();
  for (const char* elsewhere :
       {"/etc/shadow", "/run/firebreak/../../etc/shadow", "/run/firebreak/a/socket", "/run",
        "/run/firebreak/", "/run/firebreak/.", "/run/firebreak/..", "tenants.sock"}) {
    status.tenants_socket = elsewhere;
    EXPECT_TRUE(said()) << elsewhere;
    EXPECT_THAT(keeper.offer()->seats, IsEmpty()) << elsewhere;
    EXPECT_THAT(keeper.offer()->common.tenants_socket, IsEmpty()) << elsewhere;
    EXPECT_THAT(keeper.described(), HasSubstr(elsewhere));
  }
  status.tenants_socket = "/run/firebreak/tenants.sock";
  EXPECT_TRUE(said());
  EXPECT_EQ(keeper.offer()->seats.size(), 4U);
}

TEST_F(OfferKeeperTest, ADomainWhoseDirectoriesAreNotToBeMountedHasNoSeats) {
  false_domain = "a";
  EXPECT_TRUE(said());
  EXPECT_THAT(healthy(), ElementsAre("b-1", "b-2"));
  EXPECT_THAT(keeper.described(), HasSubstr("it is a link"));
}

TEST_F(OfferKeeperTest, WhatWasGivenOutStaysAsItWas) {
  said();
  const SharedOffer before = keeper.offer();
  status.domains.clear();
  said();
  EXPECT_EQ(before->seats.size(), 4u);
}

}  // namespace
}  // namespace firebreak::k8s
