// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/tidy/testing.h"

namespace firebreak::tidy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> check(const std::string& path, const std::string& text) {
  return places(check_references(tree_of({{path, text},
                                          {"docs/how/pair.md", "# Pair\n\n## What it is: a pair's own\n"},
                                          {"docs/lanes.svg", "<svg/>"},
                                          {"results/h100/demo.json", "{}"},
                                          {"src/agent/pair/pair.h", "int x;\n"}})));
}

TEST(References, WhatIsThereMayBeNamed) {
  EXPECT_THAT(check("README.md",
                    "[a](docs/how/pair.md), [b](docs/how/pair.md#what-it-is-a-pairs-own), [c](#head)\n"
                    "![d](docs/lanes.svg) [e](docs/how) [f](results/h100/demo.json)\n# Head\n"),
              IsEmpty());
  EXPECT_THAT(check("docs/use/run.md", "[a](../how/pair.md) and `pair/pair.h`, docs/how/pair.md.\n"),
              IsEmpty());
  EXPECT_THAT(check("src/a.cpp", "// docs/how/pair.md, results/h100/demo.json.\n"), IsEmpty());
}

TEST(References, APageThatHasMovedFails) {
  EXPECT_THAT(check("README.md", "\n[a](docs/pair.md)\n"), ElementsAre("README.md:2", "README.md:2"));
  EXPECT_THAT(check("docs/use/run.md", "[a](pair.md)\n"), ElementsAre("docs/use/run.md:1"));
  EXPECT_THAT(check("src/a.cpp", "\n// docs/pair.md\n"), ElementsAre("src/a.cpp:2"));
  EXPECT_THAT(check("packaging/a.service", "# docs/pair.md\n"), ElementsAre("packaging/a.service:1"));
}

TEST(References, AHeadingThatIsNotThereFails) {
  EXPECT_THAT(check("README.md", "[a](docs/how/pair.md#what-it-was)\n"), ElementsAre("README.md:1"));
  EXPECT_THAT(check("README.md", "# Head\n[a](#heads)\n"), ElementsAre("README.md:2"));
}

TEST(References, AFileThatADocumentNamesIsThere) {
  EXPECT_THAT(check("README.md", "`agent/pair/pair.h` and `agent/pair/pears.h`\n"),
              ElementsAre("README.md:1"));
  EXPECT_THAT(check("README.md", "`air/pair.h`\n"), ElementsAre("README.md:1"));
  EXPECT_THAT(check("README.md", "`pears.h`, `/etc/pears.h`, `build/pears.h`, `a b/pears.h`\n"), IsEmpty());
}

TEST(References, AResultThatIsNoMoreThereFails) {
  EXPECT_THAT(check("src/a.h", "// results/h100/demo-2.json\n"), ElementsAre("src/a.h:1"));
  EXPECT_THAT(check("src/a.h", "// my-results/h100/demo-2.json, results/h100/*.json\n"), IsEmpty());
}

TEST(References, OtherPlacesAreNotLookedAt) {
  EXPECT_THAT(check("README.md", "[a](https://example.org/docs/x.md#y)\n"), IsEmpty());
}

}  // namespace
}  // namespace firebreak::tidy
