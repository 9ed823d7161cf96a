// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/tidy/testing.h"

namespace firebreak::tidy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> check(const std::vector<Target>& targets) {
  return places(check_wing_direction(tree_of({}, targets)));
}

const Target os = target_of("os", "src/ground/os", "a.cpp");
const Target guard = target_of("guard", "src/program/guard", "a.cpp");
const Target loop = target_of("loop", "src/agent/loop", "a.cpp");

TEST(WingDirection, DownwardsPasses) {
  EXPECT_THAT(check({os, target_of("guard", "src/program/guard", "a.cpp", {"os"}),
                     target_of("cli", "src/commands/cli", "a.cpp", {"os", "guard"})}),
              IsEmpty());
}

TEST(WingDirection, TheAgentAndATenantsProgramDoNotKnowEachOther) {
  EXPECT_THAT(check({guard, target_of("loop", "src/agent/loop", "a.cpp", {"guard"})}),
              ElementsAre("src/agent/loop/CMakeLists.txt:1"));
  EXPECT_THAT(check({loop, target_of("guard", "src/program/guard", "a.cpp", {"loop"})}),
              ElementsAre("src/program/guard/CMakeLists.txt:1"));
}

TEST(WingDirection, UpwardsFails) {
  EXPECT_THAT(check({loop, target_of("os", "src/ground/os", "a.cpp", {"loop"})}),
              ElementsAre("src/ground/os/CMakeLists.txt:1"));
}

TEST(WingDirection, ATestMayLinkWhatItNeeds) {
  EXPECT_THAT(check({guard, target_of("loop_test", "src/agent/loop", "a.cpp", {"guard"}, TargetKind::Test)}),
              IsEmpty());
}

TEST(WingDirection, AFolderOfNoWingFails) {
  EXPECT_THAT(check({os, target_of("other", "src/other", "a.cpp", {"os"})}),
              ElementsAre("src/other/CMakeLists.txt:1"));
}

}  // namespace
}  // namespace firebreak::tidy
