// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/tidy/testing.h"

namespace firebreak::tidy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

std::vector<std::string> check(const std::vector<Target>& targets) {
  return places(check_link_direction(tree_of({}, targets)));
}

TEST(LinkDirection, OneWayPasses) {
  EXPECT_THAT(check({target_of("base", "src/ground/base", "a.cpp"),
                     target_of("os", "src/ground/os", "a.cpp", {"base"}),
                     target_of("view", "src/ground/os", "b.cpp", {"os"}),
                     target_of("stage", "lab/stage", "a.cpp", {"os", "base"})}),
              IsEmpty());
}

TEST(LinkDirection, NothingInSrcLinksTheLaboratory) {
  const auto stage = target_of("stage", "lab/stage", "a.cpp");
  EXPECT_THAT(check({stage, target_of("os", "src/ground/os", "a.cpp", {"stage"})}),
              ElementsAre("src/ground/os/CMakeLists.txt:1"));
  EXPECT_THAT(check({stage, target_of("os_test", "src/ground/os", "a.cpp", {"stage"}, TargetKind::Test)}),
              ElementsAre("src/ground/os/CMakeLists.txt:1"));
}

TEST(LinkDirection, FoldersThatKnowEachOtherFail) {
  EXPECT_THAT(
      check({target_of("base", "src/ground/base", "a.cpp", {"view"}),
             target_of("os", "src/ground/os", "a.cpp", {"base"}), target_of("view", "src/ground/os", "b.cpp"),
             target_of("mps", "src/agent/domains/mps", "a.cpp", {"os"})}),
      UnorderedElementsAre("src/ground/base/CMakeLists.txt:1", "src/ground/os/CMakeLists.txt:1"));
}

}  // namespace
}  // namespace firebreak::tidy
