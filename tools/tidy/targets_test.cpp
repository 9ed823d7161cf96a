// SPDX-License-Identifier: Apache-2.0
#include "tools/tidy/targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace firebreak::tidy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Targets, AreReadAsCMakeWroteThem) {
  const auto targets = parse_targets(
      "target base STATIC_LIBRARY src/ground/base\nsource src/ground/base/log.cpp\n"
      "target os_test TEST src/ground/os\ndirect base\ndirect os\npassed_on base\n");
  ASSERT_TRUE(targets.has_value());
  ASSERT_EQ(targets->size(), 2u);
  EXPECT_EQ(targets->at(0).name, "base");
  EXPECT_EQ(targets->at(0).kind, TargetKind::Library);
  EXPECT_EQ(targets->at(0).folder, "src/ground/base");
  EXPECT_THAT(targets->at(0).sources, ElementsAre("src/ground/base/log.cpp"));
  EXPECT_THAT(targets->at(0).direct, IsEmpty());
  EXPECT_EQ(targets->at(1).kind, TargetKind::Test);
  EXPECT_THAT(targets->at(1).direct, ElementsAre("base", "os"));
  EXPECT_THAT(targets->at(1).passed_on, ElementsAre("base"));
}

TEST(Targets, KindsAreCMakesTypes) {
  const auto kind = [](const std::string& type) {
    return parse_targets("target a " + type + " src/a\n")->at(0).kind;
  };
  EXPECT_EQ(kind("INTERFACE_LIBRARY"), TargetKind::Library);
  EXPECT_EQ(kind("EXECUTABLE"), TargetKind::Program);
  for (const char* type : {"SHARED_LIBRARY", "MODULE_LIBRARY", "OBJECT_LIBRARY"})
    EXPECT_EQ(kind(type), TargetKind::Shared);
}

TEST(Targets, AnythingElseIsNoList) {
  for (const char* text :
       {"source a.cpp\n", "target a\n", "target a TEST src/a\nlinks b\n", "target a TEST src/a\n\n"})
    EXPECT_FALSE(parse_targets(text).has_value()) << text;
}

}  // namespace
}  // namespace firebreak::tidy
