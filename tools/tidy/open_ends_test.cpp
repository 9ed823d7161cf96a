// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/tidy/testing.h"

namespace firebreak::tidy {
namespace {

TEST(OpenEnds, NotesInCommentsFail) {
  EXPECT_THAT(places(check_open_ends(tree_of({{"a.cpp", "int a;\n// TODO: more\n/* FIXME */\n"},
                                              {"b.cmake", "set(a 1) # TODO later\n"}}))),
              testing::ElementsAre("a.cpp:2", "a.cpp:3", "b.cmake:1"));
}

TEST(OpenEnds, LongerWordsStringsAndOtherFilesPass) {
  EXPECT_THAT(
      check_open_ends(tree_of({{"a.cpp", "// TODOS HACKING\nauto s = \"TODO\";\n"}, {"a.md", "TODO"}})),
      testing::IsEmpty());
}

}  // namespace
}  // namespace firebreak::tidy
