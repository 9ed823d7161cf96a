// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/tidy/testing.h"

namespace firebreak::tidy {
namespace {

TEST(UsingNamespace, FailsInAHeaderOnly) {
  const std::string text = "#pragma once\nusing  namespace std;\n";
  EXPECT_THAT(places(check_using_namespace(tree_of({{"a.h", text}}))), testing::ElementsAre("a.h:2"));
  EXPECT_THAT(check_using_namespace(tree_of({{"a.cpp", text}})), testing::IsEmpty());
}

TEST(UsingNamespace, OtherUsesOfTheWordsPass) {
  EXPECT_THAT(
      check_using_namespace(tree_of({{"a.h", "namespace a {} using std::string; // using namespace b\n"}})),
      testing::IsEmpty());
}

}  // namespace
}  // namespace firebreak::tidy
