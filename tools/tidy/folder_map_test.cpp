// SPDX-License-Identifier: Apache-2.0
#include "tools/tidy/folder_map.h"

#include <gtest/gtest.h>

namespace firebreak::tidy {
namespace {

TEST(FolderMap, PathsFallIntoTheLongestFolder) {
  EXPECT_EQ(mapped_folder("src/pair/pair.h"), "src/pair");
  EXPECT_EQ(mapped_folder("softgpu/driver/stream.cpp"), "softgpu/driver");
  EXPECT_EQ(mapped_folder("src/pairing/x.h"), "");
  EXPECT_EQ(mapped_folder("README.md"), "");
}

TEST(FolderMap, WhatAFolderKnowsItsUsersKnowToo) {
  EXPECT_TRUE(may_know("src/watch", "src/os"));
  EXPECT_TRUE(may_know("src/watch", "src/base"));
  EXPECT_TRUE(may_know("src/cli", "src/agent"));
  EXPECT_TRUE(may_know("tests", "softgpu/driver"));
}

TEST(FolderMap, ArrowsPointOneWay) {
  EXPECT_FALSE(may_know("src/base", "src/os"));
  EXPECT_FALSE(may_know("src/agent", "src/cli"));
  EXPECT_FALSE(may_know("src/pair", "src/os"));
  for (const auto& one : folder_map()) {
    for (const auto& other : folder_map()) {
      if (one.folder == other.folder) continue;
      EXPECT_FALSE(may_know(one.folder, other.folder) && may_know(other.folder, one.folder) &&
                   !(one.folder == "tests" || one.folder == "bench"))
          << one.folder << " and " << other.folder << " know each other";
    }
  }
}

}  // namespace
}  // namespace firebreak::tidy
