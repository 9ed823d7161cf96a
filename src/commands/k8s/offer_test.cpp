// SPDX-License-Identifier: Apache-2.0
#include "commands/k8s/offer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace firebreak::k8s {
namespace {

using testing::ElementsAre;
using testing::FieldsAre;
using testing::HasSubstr;
using testing::Pair;

Offer two_domains() {
  Offer offer;
  offer.seats = {{"a-1", "a", "GPU-1", true}, {"a-2", "a", "GPU-1", true}, {"b-1", "b", "GPU-1", false}};
  offer.common = {"/run/firebreak/tenants.sock", "", ""};
  return offer;
}

TEST(OfferedSeats, GiveAContainerTheirDomainAndWhatAllGet) {
  const auto grant = grant_for(two_domains(), {"a-2"});
  ASSERT_TRUE(grant) << to_string(grant.error());
  EXPECT_THAT(grant->environment, ElementsAre(Pair("FIREBREAK_SOCKET", "/run/firebreak/tenants.sock"),
                                              Pair("CUDA_MPS_PIPE_DIRECTORY", "/run/firebreak/a/pipe")));
  EXPECT_THAT(
      grant->mounts,
      ElementsAre(FieldsAre("/run/firebreak/tenants.sock", "/run/firebreak/tenants.sock", false, true),
                  FieldsAre("/run/firebreak/a/pipe", "/run/firebreak/a/pipe", false, true)));
}

TEST(OfferedSeats, OfTwoDomainsReachBothAndBeginInOneThatIsHealthy) {
  Offer offer = two_domains();
  const auto both = grant_for(offer, {"b-1", "a-1"});
  ASSERT_TRUE(both);
  ASSERT_EQ(both->mounts.size(), 3u);
  EXPECT_EQ(both->mounts[1].host_path, "/run/firebreak/a/pipe");
  EXPECT_EQ(both->mounts[2].host_path, "/run/firebreak/b/pipe");
  ASSERT_EQ(both->environment.size(), 2u) << "a variable has one value";
  EXPECT_EQ(both->environment[1].second, "/run/firebreak/a/pipe");
  offer.seats[0].is_healthy = false;
  offer.seats[2].is_healthy = true;
  EXPECT_EQ(grant_for(offer, {"a-1", "b-1"})->environment[1].second, "/run/firebreak/b/pipe");
}

TEST(OfferedSeats, OfOneDomainMountItOnce) {
  EXPECT_EQ(grant_for(two_domains(), {"a-1", "a-2"})->mounts.size(), 2u);
}

TEST(OfferedSeats, ThatThereAreNotOrAreNamedTwiceAreAnError) {
  const auto unknown = grant_for(two_domains(), {"a-1", "a-9"});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::NotFound);
  EXPECT_THAT(unknown.error().message, HasSubstr("'a-9'"));
  const auto twice = grant_for(two_domains(), {"a-1", "a-1"});
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code, ErrorCode::InvalidArgument);
  EXPECT_FALSE(grant_for(two_domains(), {}));
}

TEST(OfferedSeats, BeforeAnAgentHasAnsweredAreNotGivenOut) {
  const auto grant = grant_for(Offer(), {"a-1"});
  ASSERT_FALSE(grant);
  EXPECT_EQ(grant.error().code, ErrorCode::Unavailable);
}

}  // namespace
}  // namespace firebreak::k8s
