// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/tidy/testing.h"

namespace firebreak::tidy {
namespace {

/// A function of this many lines, signature and closing brace included.
std::string function_of(int lines) {
  std::string text = "int f(int x) {\n";
  for (int i = 2; i < lines; ++i) text += "  ++x;\n";
  return text + "}\n";
}

std::vector<std::string> check(const std::string& text) {
  return places(check_function_length(tree_of({{"src/a.cpp", text}})));
}

TEST(FunctionLength, SeventyLinesPassOneMoreFails) {
  EXPECT_THAT(check(function_of(70)), testing::IsEmpty());
  EXPECT_THAT(check("\n\n" + function_of(71)), testing::ElementsAre("src/a.cpp:3"));
}

TEST(FunctionLength, BracesInTextDoNotHideALongFunction) {
  EXPECT_THAT(check("void g() { f(\"}\"); /* } */ }\n" + function_of(71)),
              testing::ElementsAre("src/a.cpp:2"));
  EXPECT_THAT(check("#define OPEN {\n" + function_of(71)), testing::ElementsAre("src/a.cpp:2"));
}

TEST(FunctionLength, ALongClassOfShortFunctionsPasses) {
  std::string text = "class A {\n";
  for (int i = 0; i < 40; ++i) text += "  void f() {\n  }\n";
  EXPECT_THAT(check(text + "};\n"), testing::IsEmpty());
}

}  // namespace
}  // namespace firebreak::tidy
