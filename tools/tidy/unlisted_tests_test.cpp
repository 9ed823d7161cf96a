// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/tidy/testing.h"

namespace firebreak::tidy {
namespace {

std::vector<std::string> check(const std::vector<std::pair<std::string, std::string>>& files) {
  return places(check_unlisted_tests(tree_of(files)));
}

TEST(UnlistedTests, ATestThatItsFolderNamesPasses) {
  EXPECT_THAT(
      check({{"src/a/x_test.cpp", ""}, {"src/a/CMakeLists.txt", "firebreak_test(a SOURCES x_test.cpp)"}}),
      testing::IsEmpty());
  EXPECT_THAT(check({{"src/a/x_test.cpp", ""}, {"src/CMakeLists.txt", "SOURCES a/x_test.cpp"}}),
              testing::IsEmpty());
}

TEST(UnlistedTests, ATestNamedNowhereFails) {
  EXPECT_THAT(check({{"src/a/x_test.cpp", ""}}), testing::ElementsAre("src/a/x_test.cpp:1"));
  EXPECT_THAT(
      check({{"src/a/x_test.cpp", ""}, {"src/a/CMakeLists.txt", "SOURCES my_x_test.cpp x_test.cppm"}}),
      testing::ElementsAre("src/a/x_test.cpp:1"));
}

TEST(UnlistedTests, ANamesakeElsewhereDoesNotCount) {
  EXPECT_THAT(check({{"src/a/x_test.cpp", ""}, {"src/b/CMakeLists.txt", "SOURCES x_test.cpp"}}),
              testing::ElementsAre("src/a/x_test.cpp:1"));
}

TEST(UnlistedTests, ACommentedOutTestFails) {
  EXPECT_THAT(check({{"src/a/x_test.cpp", ""}, {"src/a/CMakeLists.txt", "# SOURCES x_test.cpp\n"}}),
              testing::ElementsAre("src/a/x_test.cpp:1"));
}

}  // namespace
}  // namespace firebreak::tidy
