// SPDX-License-Identifier: Apache-2.0
#include "tools/tidy/source_text.h"

#include <gtest/gtest.h>

namespace firebreak::tidy {
namespace {

std::string code(std::string_view source) { return split_views(source).code; }

TEST(SourceText, ViewsAreAsLongAsTheSource) {
  const std::string source = "int a; // one\n/* two\n three */ char b = 'x';\n";
  const SourceViews views = split_views(source);
  EXPECT_EQ(views.code, "int a;       \n      \n          char b = ' ';\n");
  EXPECT_EQ(views.comments, "       // one\n/* two\n three */              \n");
}

TEST(SourceText, StringsKeepTheirQuotesOnly) {
  EXPECT_EQ(code(R"(f("a\"b{", '\'', "//");)"), R"(f("     ", '  ', "  ");)");
}

TEST(SourceText, RawStringsEndAtTheirDelimiter) {
  EXPECT_EQ(code("R\"x(\")\" { )x\" y"), "R\"          \" y");
  EXPECT_EQ(code("u8R\"({)\";"), "u8R\"   \";");
}

TEST(SourceText, DigitSeparatorsAreNoLiterals) { EXPECT_EQ(code("1'000'000 {u'x'}"), "1'000'000 {u' '}"); }

TEST(SourceText, ACommentInAStringIsNone) { EXPECT_EQ(code("\"/*\" a \"*/\""), "\"  \" a \"  \""); }

TEST(SourceText, ABackslashContinuesALineComment) { EXPECT_EQ(code("// a \\\n b\nc"), "      \n  \nc"); }

TEST(SourceText, CutOffSourcesEndQuietly) {
  for (const char* source : {"\"abc", "'", "R\"(", "R\"x", "/*", "/", "//", "\"\\", "#", ""}) {
    EXPECT_EQ(code(source).size(), std::string_view(source).size()) << source;
  }
}

TEST(SourceText, DirectivesGoWithTheirContinuedLines) {
  const std::string source = "#define A(x) { \\\n  }\nint b;\n  # if X\n";
  EXPECT_EQ(without_directives(source, split_views(source).code),
            "                \n   \nint b;\n        \n");
}

}  // namespace
}  // namespace firebreak::tidy
