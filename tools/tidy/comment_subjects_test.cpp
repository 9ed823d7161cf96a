// SPDX-License-Identifier: Apache-2.0
#include "tools/tidy/comment_subjects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/tidy/testing.h"

namespace firebreak::tidy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

std::vector<std::string> texts(const std::string& source) {
  std::vector<std::string> found;
  for (const Comment& comment : comments_of(tree_of({{"src/a.cpp", source}}))) found.push_back(comment.text);
  return found;
}

TEST(CommentSubjects, LinesOfOneColumnAreOneComment) {
  EXPECT_THAT(
      texts(
          "// SPDX-License-Identifier: Apache-2.0\n"
          "/// Reads a line\n/// of text.\nint a;  ///< Of it.\nint b;  // Two.\n  // Three\n  // lines.\n"),
      ElementsAre("Reads a line of text.", "Of it.", "Two.", "Three lines."));
}

TEST(CommentSubjects, SlashesInALiteralAreNoComment) {
  EXPECT_THAT(texts("const char* a = \"// of it\";\n"), IsEmpty());
}

TEST(CommentSubjects, TheFirstWordDecides) {
  EXPECT_TRUE(begins_without_subject("Of a process that is dead."));
  EXPECT_TRUE(begins_without_subject("whether it ends"));
  EXPECT_FALSE(begins_without_subject("Reads of it are free."));
  EXPECT_FALSE(begins_without_subject("Offers are kept."));
  EXPECT_FALSE(begins_without_subject("`of` is a word."));
}

TEST(CommentSubjects, TooManyAreAFinding) {
  std::string mixed;
  for (std::size_t i = 0; i < 100; ++i)
    mixed += i < comments_without_subject_percent_max ? "int a;  // Of it.\n" : "int b;  // A number.\n";
  EXPECT_THAT(check_comment_subjects(tree_of({{"src/a.cpp", mixed}})), IsEmpty());
  EXPECT_THAT(check_comment_subjects(tree_of({{"src/a.cpp", mixed + "int a;  // Of it.\n"}})), SizeIs(1));
}

}  // namespace
}  // namespace firebreak::tidy
