// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/tidy/testing.h"

namespace firebreak::tidy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> check(const std::string& one, const std::string& other) {
  return places(check_type_names(tree_of({{"src/a/a.h", one}, {"src/b/b.h", other}})));
}

TEST(TypeNames, TwoHeadersThatDefineOneNameFail) {
  for (const char* other :
       {"struct Report {\n};\n", "class Report final : public Base {\n};\n", "enum class Report { A };\n",
        "struct alignas(16) Report {};\n", "template <class T>\nclass Report\n    : public Base {};\n"})
    EXPECT_THAT(check("\nclass Report {\n};\n", other), testing::SizeIs(1)) << other;
  EXPECT_THAT(check("class Report {};\n", "\n\nunion Report {};\n"), ElementsAre("src/b/b.h:3"));
}

TEST(TypeNames, DeclarationsNestedTypesAndOtherNamesPass) {
  EXPECT_THAT(check("class Report {};\n", "class Report;\nstruct Reporter {};\n"), IsEmpty());
  EXPECT_THAT(check("class Report {};\n", "class Other {\n  struct Report {};\n};\n// class Report {};\n"),
              IsEmpty());
  EXPECT_THAT(check("class Report {};\n", "class Report* find();\nint x() {}\n"), IsEmpty());
}

TEST(TypeNames, OnlyHeadersOfSrcCount) {
  EXPECT_THAT(check_type_names(tree_of({{"src/a/a.h", "struct Report {};\n"},
                                        {"src/b/b.cpp", "struct Report {};\n"},
                                        {"lab/b/b.h", "struct Report {};\n"}})),
              IsEmpty());
}

}  // namespace
}  // namespace firebreak::tidy
