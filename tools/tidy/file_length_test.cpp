// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/tidy/testing.h"

namespace firebreak::tidy {
namespace {

TEST(FileLength, NineHundredLinesPassOneMoreFails) {
  EXPECT_THAT(check_file_length(tree_of({{"a.cpp", std::string(900, '\n')}})), testing::IsEmpty());
  EXPECT_THAT(places(check_file_length(tree_of({{"a.cpp", std::string(901, '\n')}}))),
              testing::ElementsAre("a.cpp:901"));
}

TEST(FileLength, DataMayBeLong) {
  EXPECT_THAT(check_file_length(tree_of({{"a.json", std::string(5000, '\n')}})), testing::IsEmpty());
}

}  // namespace
}  // namespace firebreak::tidy
