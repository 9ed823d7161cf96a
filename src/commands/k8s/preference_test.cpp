// SPDX-License-Identifier: Apache-2.0
#include "commands/k8s/preference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace firebreak::k8s {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

/// Two GPUs of two domains of three seats each.
Offer two_gpus() {
  Offer offer;
  for (const auto& [domain, gpu] :
       {std::pair("a", "GPU-1"), {"b", "GPU-1"}, {"c", "GPU-2"}, {"d", "GPU-2"}}) {
    for (std::uint32_t number = 1; number <= 3; ++number)
      offer.seats.push_back({seats::seat_name(domain, number), domain, gpu, true});
  }
  return offer;
}

std::vector<std::string> all_of(const Offer& offer) {
  std::vector<std::string> ids;
  for (const OfferedSeat& seat : offer.seats) ids.push_back(seat.id);
  return ids;
}

std::vector<std::string> chosen(const SeatWish& wish) {
  const auto seats = preferred_seats(two_gpus(), wish);
  EXPECT_TRUE(seats) << to_string(seats.error());
  return seats.value_or(std::vector<std::string>());
}

std::set<std::string> domains_of(const std::vector<std::string>& ids) {
  std::set<std::string> domains;
  for (const std::string& id : ids) domains.insert(two_gpus().find(id)->domain);
  return domains;
}

TEST(PreferredSeats, OfAPairAreInTwoDomainsOfOneGpu) {
  EXPECT_THAT(chosen({all_of(two_gpus()), {}, 2}), UnorderedElementsAre("a-1", "b-1"));
  EXPECT_THAT(domains_of(chosen({{"c-1", "a-2", "a-3", "d-3"}, {}, 2})), UnorderedElementsAre("c", "d"))
      << "the GPU that has two domains left";
  EXPECT_THAT(chosen({{"a-1", "a-2", "a-3", "b-1"}, {}, 2}), UnorderedElementsAre("a-1", "b-1"))
      << "however many the first has left";
}

TEST(PreferredSeats, AreOfOneDomainWhereItsGpuHasNoOther) {
  EXPECT_THAT(chosen({{"a-1", "a-2", "c-1"}, {}, 2}), UnorderedElementsAre("a-1", "a-2"));
}

TEST(PreferredSeats, GoWithThoseThatHaveToBeIncluded) {
  EXPECT_THAT(chosen({all_of(two_gpus()), {"d-2"}, 2}), UnorderedElementsAre("d-2", "c-1"));
  EXPECT_THAT(chosen({all_of(two_gpus()), {"a-1", "a-2"}, 2}), UnorderedElementsAre("a-1", "a-2"));
}

TEST(PreferredSeats, AreOfTheDomainThatHasMoreLeft) {
  EXPECT_THAT(chosen({{"a-3", "b-1", "b-2"}, {}, 1}), ElementsAre("b-1"));
  EXPECT_THAT(domains_of(chosen({all_of(two_gpus()), {}, 4})), UnorderedElementsAre("a", "b"));
}

TEST(PreferredSeats, SpillOverToAnotherGpuAndToWhatIsNotKnown) {
  const auto seven = chosen({all_of(two_gpus()), {}, 7});
  EXPECT_EQ(seven.size(), 7u);
  EXPECT_THAT(domains_of(seven), testing::AllOf(Contains("a"), Contains("b"), testing::SizeIs(3)));
  EXPECT_THAT(chosen({{"x-1", "a-1"}, {}, 1}), ElementsAre("a-1"));
  EXPECT_THAT(chosen({{"x-1", "a-1"}, {}, 2}), ElementsAre("a-1", "x-1"));
}

TEST(PreferredSeats, NoneAreWantedByNobody) { EXPECT_THAT(chosen({{"a-1"}, {}, 0}), IsEmpty()); }

TEST(PreferredSeats, MoreThanThereAreOrThatDoNotFitAreAnError) {
  const SeatWish wishes[] = {{{"a-1"}, {}, 2},
                             {{"a-1", "a-1"}, {}, 2},
                             {{"a-1"}, {}, -1},
                             {{"a-1", "b-1"}, {"c-1"}, 2},
                             {{"a-1", "b-1"}, {"a-1", "b-1"}, 1}};
  for (const SeatWish& wish : wishes) {
    const auto seats = preferred_seats(two_gpus(), wish);
    ASSERT_FALSE(seats) << wish.size;
    EXPECT_EQ(seats.error().code, ErrorCode::InvalidArgument);
    EXPECT_EQ(seats.error().message.find('\n'), std::string::npos);
  }
  EXPECT_THAT(preferred_seats(two_gpus(), wishes[0]).error().message,
              HasSubstr("2 seats are wanted, and 1 are available"));
}

}  // namespace
}  // namespace firebreak::k8s
