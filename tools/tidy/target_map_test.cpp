// SPDX-License-Identifier: Apache-2.0
#include "tools/tidy/target_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/tidy/testing.h"

namespace firebreak::tidy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

/// Two libraries in src/shared/link, one in src/ground/os, tests of both folders and one in tests/.
std::vector<Target> targets() {
  return {target_of("link", "src/shared/link", "link.cpp"),
          target_of("view", "src/shared/link", "view.cpp"),
          target_of("link_test", "src/shared/link", "link_test.cpp", {"link"}, TargetKind::Test),
          target_of("os_test", "src/ground/os", "os_test.cpp", {"os"}, TargetKind::Test),
          target_of("os", "src/ground/os", "os.cpp"),
          target_of("whole_test", "tests/link", "whole_test.cpp", {"link"}, TargetKind::Test),
          target_of("helper", "tests/link", "helper.cpp", {}, TargetKind::Program)};
}

/// Names the owners of `path`, in a tree of these files.
std::vector<std::string> owners(const std::string& path,
                                const std::vector<std::pair<std::string, std::string>>& files) {
  const SourceTree tree = tree_of(files, targets());
  std::vector<std::string> names;
  const TargetMap map(tree);
  for (const Target* target : map.owners(path)) names.push_back(target->name);
  return names;
}

TEST(TargetMap, AHeaderIsOfWhoCompilesTheSourceBesideIt) {
  EXPECT_THAT(
      owners("src/shared/link/view.h", {{"src/shared/link/view.h", ""},
                                        {"src/shared/link/link.cpp", "#include \"shared/link/view.h\""}}),
      ElementsAre("view"));
}

TEST(TargetMap, AHeaderAloneIsOfTheFirstOfItsFolderThatIncludesIt) {
  EXPECT_THAT(owners("src/shared/link/x.h", {{"src/shared/link/x.h", ""},
                                             {"src/shared/link/view.cpp", "#include \"shared/link/x.h\""}}),
              ElementsAre("view"));
  EXPECT_THAT(
      owners("src/shared/link/x.h", {{"src/shared/link/x.h", ""},
                                     {"src/shared/link/view.h", "#include \"shared/link/x.h\""},
                                     {"src/shared/link/view.cpp", "#include \"shared/link/view.h\""},
                                     {"src/shared/link/link_test.cpp", "#include \"shared/link/x.h\""}}),
      ElementsAre("view"));
}

TEST(TargetMap, AHeaderThatOnlyOtherFoldersIncludeIsOfItsFoldersFirstTarget) {
  EXPECT_THAT(owners("src/ground/os/x.h", {{"src/ground/os/x.h", ""},
                                           {"src/ground/os/os_test.cpp", "#include \"ground/os/x.h\""},
                                           {"src/shared/link/link.cpp", "#include \"ground/os/x.h\""}}),
              ElementsAre("os"));
}

TEST(TargetMap, AHeaderThatOnlyTestsIncludeIsOfAllOfThem) {
  EXPECT_THAT(owners("src/ground/os/x.h", {{"src/ground/os/x.h", ""},
                                           {"src/ground/os/os_test.cpp", "#include \"ground/os/x.h\""},
                                           {"src/shared/link/link_test.cpp", "#include \"ground/os/x.h\""}}),
              UnorderedElementsAre("os_test", "link_test"));
}

TEST(TargetMap, WhatStandsInTestsIsOfAllThatIncludeIt) {
  EXPECT_THAT(owners("tests/link/x.h", {{"tests/link/x.h", ""},
                                        {"tests/link/helper.cpp", "#include \"tests/link/x.h\""},
                                        {"tests/link/whole_test.cpp", "#include \"tests/link/x.h\""}}),
              UnorderedElementsAre("whole_test", "helper"));
}

TEST(TargetMap, WhatNobodyCompilesIsOfTheFolderAround) {
  EXPECT_THAT(owners("src/ground/os/deeper/check.cpp", {{"src/ground/os/deeper/check.cpp", ""}}),
              ElementsAre("os"));
  EXPECT_THAT(owners("src/novelty/x.h",
                     {{"src/novelty/x.h", ""}, {"src/ground/os/os.cpp", "#include \"novelty/x.h\""}}),
              IsEmpty());
}

}  // namespace
}  // namespace firebreak::tidy
