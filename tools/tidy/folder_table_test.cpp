// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/tidy/testing.h"

namespace firebreak::tidy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::string head = "# Architecture\n\n| folder | one idea | knows |\n|---|---|---|\n";

std::vector<std::string> check(const std::string& rows) {
  const std::vector<Target> targets{
      target_of("c_abi", "include/firebreak", "x.cpp"),
      target_of("base", "src/ground/base", "log.cpp"),
      target_of("os", "src/ground/os", "real.cpp", {"base"}),
      target_of("os_test", "src/ground/os", "real_test.cpp", {"os", "machine"}, TargetKind::Test),
      target_of("machine", "lab/softgpu/machine", "a.cpp", {"os", "base"}),
      target_of("decode", "lab/work/decode", "a.cpp", {"common", "c_abi"}),
      target_of("common", "lab/work/common", "a.cpp", {"base"}),
      target_of("whole", "tests/whole", "a.cpp", {"os"}, TargetKind::Program)};
  return places(check_folder_table(tree_of({{"ARCHITECTURE.md", head + rows}}, targets)));
}

const std::string c_abi = "| `include/firebreak` | for tenants | - |\n";
const std::string base = "| `src/ground/base` | the ground, the clock | - |\n";
const std::string os = "| `src/ground/os` | calls Linux | base |\n";
const std::string machine = "| `lab/softgpu/machine` | what is shared | base, os |\n";
const std::string work = "| `lab/work` | tenants | include/firebreak, base |\n";

TEST(FolderTable, WhatCMakeLinksPasses) { EXPECT_THAT(check(c_abi + base + os + machine + work), IsEmpty()); }

TEST(FolderTable, ALinkThatTheTableDoesNotNameFails) {
  EXPECT_THAT(check(c_abi + base + "| `src/ground/os` | calls Linux | - |\n" + machine + work),
              ElementsAre("ARCHITECTURE.md:7"));
}

TEST(FolderTable, ARightThatCMakeDoesNotGiveFails) {
  EXPECT_THAT(check(c_abi + base + os + "| `lab/softgpu/machine` | shared | base, os, work |\n" + work),
              ElementsAre("ARCHITECTURE.md:8"));
  EXPECT_THAT(check(c_abi + "| `src/ground/base` | the ground | novelty |\n" + os + machine + work),
              ElementsAre("ARCHITECTURE.md:6"));
}

TEST(FolderTable, AFolderWithoutARowFailsButForTests) {
  EXPECT_THAT(check(c_abi + base + os + machine), ElementsAre("ARCHITECTURE.md:1", "ARCHITECTURE.md:1"));
}

TEST(FolderTable, ARowThatCMakeDoesNotBuildFails) {
  EXPECT_THAT(check(c_abi + base + os + machine + work + "| `src/gone` | was here | base |\n"),
              ElementsAre("ARCHITECTURE.md:10"));
  EXPECT_THAT(check(c_abi + base + os + machine + work + "| `python/firebreak` | by ctypes | the C ABI |\n"),
              IsEmpty());
}

TEST(FolderTable, OtherTablesAreNotRead) {
  EXPECT_THAT(
      check(c_abi + base + os + machine + work + "\n| promise | tested by |\n|---|---|\n| `src/x` | y |\n"),
      IsEmpty());
}

TEST(FolderTable, ARowStandsInAnyDocument) {
  const std::vector<Target> targets{target_of("base", "src/ground/base", "log.cpp")};
  const auto check_page = [&](const std::string& row) {
    return places(check_folder_table(
        tree_of({{"ARCHITECTURE.md", "text\n"}, {"docs/how/ground.md", "\n" + head + row}}, targets)));
  };
  EXPECT_THAT(check_page(base), IsEmpty());
  EXPECT_THAT(check_page("| `src/ground/base` | the ground | novelty |\n"),
              ElementsAre("docs/how/ground.md:6"));
  EXPECT_THAT(check_page(""), ElementsAre("ARCHITECTURE.md:1"));
}

}  // namespace
}  // namespace firebreak::tidy
