// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/tidy/testing.h"

namespace firebreak::tidy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// A line of so many characters, in words.
std::string line_of(std::size_t characters) {
  std::string line;
  while (line.size() < characters) line += "word ";
  line.resize(characters - 1);
  return line + "w\n";
}

std::vector<std::string> check(const std::string& path, const std::string& text) {
  return places(check_line_length(tree_of({{path, text}})));
}

TEST(LineLength, ALineOf120CharactersPassesOneMoreFails) {
  for (const char* path : {"a.md", "CMakeLists.txt", "cmake/a.cmake"}) {
    EXPECT_THAT(check(path, "\n" + line_of(120)), IsEmpty());
    EXPECT_THAT(check(path, "\n" + line_of(121)), ElementsAre(std::string(path) + ":2"));
  }
}

TEST(LineLength, CharactersAreCountedAndNotBytes) {
  std::string line = line_of(120);
  line.replace(0, 1, "\xc3\xa4");
  EXPECT_THAT(check("a.md", line), IsEmpty());
}

TEST(LineLength, WhatMarkdownCannotWrapPasses) {
  const std::string address = "https://example.org/" + std::string(120, 'x');
  EXPECT_THAT(check("a.md", "| " + line_of(150)), IsEmpty());
  EXPECT_THAT(check("a.md", "    " + line_of(150)), IsEmpty());
  EXPECT_THAT(check("a.md", "```\n" + line_of(150) + "```\n"), IsEmpty());
  EXPECT_THAT(check("a.md", "- [two words](" + address + ")\n" + address + "\n"), IsEmpty());
  EXPECT_THAT(check("a.md", "```\n```\n" + line_of(150)), ElementsAre("a.md:3"));
  EXPECT_THAT(check("a.md", "[two words](" + address + ") and more\n"), ElementsAre("a.md:1"));
}

TEST(LineLength, CMakeHasNeitherTablesNorFences) {
  EXPECT_THAT(check("CMakeLists.txt", "    " + line_of(150)), ElementsAre("CMakeLists.txt:1"));
}

TEST(LineLength, OtherFilesAreTheFormattersBusiness) { EXPECT_THAT(check("a.cpp", line_of(150)), IsEmpty()); }

}  // namespace
}  // namespace firebreak::tidy
