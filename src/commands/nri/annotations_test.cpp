// SPDX-License-Identifier: Apache-2.0
#include "commands/nri/annotations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace firebreak::nri {
namespace {

using testing::HasSubstr;

std::optional<Wish> seat(const std::string& value, const std::string& container) {
  const auto wish = wish_of({{seat_annotation, value}}, container);
  EXPECT_TRUE(wish) << value;
  return wish.value_or(std::nullopt);
}

TEST(PodAnnotations, OfOthersAskForNothing) {
  EXPECT_EQ(wish_of({{"app", "x"}, {"firebreak.dev/last-fault", "a stray"}}, "main").value(), std::nullopt);
}

TEST(PodAnnotations, NameADomainForAllContainersOrForSome) {
  EXPECT_EQ(seat("a", "main"), (Wish{PairPart::Alone, "a"}));
  EXPECT_EQ(seat("any", "main"), (Wish{PairPart::Alone, ""}));
  EXPECT_EQ(seat(" main = a , side = any ", "main"), (Wish{PairPart::Alone, "a"}));
  EXPECT_EQ(seat("main=a,side=any", "side"), (Wish{PairPart::Alone, ""}));
  EXPECT_EQ(seat("main=a", "log"), std::nullopt);
  EXPECT_EQ(seat("any,main=b", "log"), (Wish{PairPart::Alone, ""}));
  EXPECT_EQ(seat("any,main=b", "main"), (Wish{PairPart::Alone, "b"}));
}

TEST(PodAnnotations, NameTheTwoContainersOfAPair) {
  const Annotations pair = {{pair_annotation, "main, spare"}, {seat_annotation, "a"}};
  EXPECT_EQ(wish_of(pair, "main").value(), (Wish{PairPart::Active, ""}));
  EXPECT_EQ(wish_of(pair, "spare").value(), (Wish{PairPart::Standby, ""}));
  EXPECT_EQ(wish_of(pair, "third").value(), (Wish{PairPart::Alone, "a"}));
}

struct Bad {
  Annotations annotations;
  std::string why;
};

TEST(PodAnnotations, ThatNobodyUnderstandsAreToldInOneLineWhicheverContainerAsks) {
  const std::vector<Bad> all = {
      {{{seat_annotation, ""}}, "it names no domain"},
      {{{seat_annotation, "a/b"}}, "it names no domain"},
      {{{seat_annotation, "main="}}, "it names no domain"},
      {{{seat_annotation, "a,"}}, "it names no domain"},
      {{{seat_annotation, "=a"}}, "a container's name is missing"},
      {{{seat_annotation, "a,b"}}, "two domains for all containers"},
      {{{seat_annotation, "main=a,main=b"}}, "container 'main' is named twice"},
      {{{seat_annotation, "a\nb\xff"}}, "\"a?b?\""},
      {{{pair_annotation, "main"}}, "two containers"},
      {{{pair_annotation, "main,main"}}, "two containers"},
      {{{pair_annotation, "a,b,c"}}, "two containers"},
      {{{pair_annotation, "main,"}}, "two containers"},
      {{{pair_annotation, "main=a,spare=b"}}, "two containers"},
      {{{pair_annotation, "main,spare"}, {seat_annotation, "spare=a"}}, "container 'spare' is in"},
      {{{"firebreak.dev/seats", "a"}}, "annotation firebreak.dev/seats: there is no such one"},
      {{{"firebreak.dev/\nroot: ", "a"}}, "annotation firebreak.dev/?root: : there is no such one"},
      {{{seat_annotation, "x\ny=a,x\ny=b"}}, "container 'x?y' is named twice"},
      {{{pair_annotation, "x\ny,z"}, {seat_annotation, "x\ny=a"}}, "container 'x?y' is in"},
      {{{"firebreak.dev/" + std::string(9'999, 'x'), "a"}}, "there is no such one"},
      {{{seat_annotation, std::string(9'999, 'x') + "=a," + std::string(9'999, 'x') + "=b"}},
       "is named twice"},
  };
  for (const Bad& each : all) {
    for (const char* container : {"main", "someone"}) {
      const auto wish = wish_of(each.annotations, container);
      ASSERT_FALSE(wish) << each.why;
      EXPECT_EQ(wish.error().code, ErrorCode::InvalidArgument);
      EXPECT_THAT(wish.error().message, HasSubstr(each.why));
      EXPECT_THAT(to_string(wish.error()), Not(HasSubstr("\n")));
      EXPECT_LT(to_string(wish.error()).size(), 500u) << "it goes into an event";
    }
  }
}

}  // namespace
}  // namespace firebreak::nri
