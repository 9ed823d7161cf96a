// SPDX-License-Identifier: Apache-2.0
#include "tools/tidy/source_tree.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tools/tidy/testing.h"

namespace firebreak::tidy {
namespace {

TEST(SourceTree, KindsComeFromNamesAndShebangs) {
  EXPECT_EQ(SourceFile("a/b.h", "").kind(), FileKind::Header);
  EXPECT_EQ(SourceFile("a/b.cu", "").kind(), FileKind::Source);
  EXPECT_EQ(SourceFile("a/CMakeLists.txt", "").kind(), FileKind::CMake);
  EXPECT_EQ(SourceFile("dev", "#!/bin/sh\n").kind(), FileKind::Script);
  EXPECT_EQ(SourceFile("README.md", "text").kind(), FileKind::Other);
}

TEST(SourceTree, LinesCountFromOneAndNeedNoFinalLineEnd) {
  const SourceFile file("a.cpp", "one\ntwo\nthree");
  EXPECT_EQ(file.line_of(0), 1);
  EXPECT_EQ(file.line_of(4), 2);
  EXPECT_EQ(file.line_count(), 3);
  EXPECT_EQ(SourceFile("a.cpp", "one\n").line_count(), 1);
}

TEST(SourceTree, FindsByWholePath) {
  const SourceTree tree = tree_of({{"src/b.cpp", "b"}, {"src/a.cpp", "a"}});
  ASSERT_NE(tree.find("src/a.cpp"), nullptr);
  EXPECT_EQ(tree.find("src/a.cpp")->text(), "a");
  EXPECT_EQ(tree.find("src/a"), nullptr);
}

TEST(SourceTree, ReadsACheckoutWithoutBuildAndHiddenFolders) {
  const auto root = std::filesystem::path(testing::TempDir()) / "tidy_source_tree_test";
  std::filesystem::remove_all(root);
  for (const char* path : {"src/a.cpp", "build/b.cpp", ".git/c.cpp", ".ci/run", "src/build/d.cpp"}) {
    std::filesystem::create_directories((root / path).parent_path());
    std::ofstream(root / path) << "text";
  }
  const auto tree = read_source_tree(root);
  std::filesystem::remove_all(root);
  ASSERT_TRUE(tree.has_value());
  std::vector<std::string> paths;
  for (const auto& file : tree->files()) paths.push_back(file.path());
  EXPECT_EQ(paths, (std::vector<std::string>{".ci/run", "src/a.cpp", "src/build/d.cpp"}));
}

TEST(SourceTree, AMissingFolderIsNoTree) {
  EXPECT_FALSE(read_source_tree("/nonexistent/folder").has_value());
}

}  // namespace
}  // namespace firebreak::tidy
