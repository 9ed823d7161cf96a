// SPDX-License-Identifier: Apache-2.0
#include "tools/tidy/kernel_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/tidy/testing.h"

namespace firebreak::tidy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr const char* page =
    "# The kernel part\n"
    "\n"
    "| layer of `model` | files |\n"
    "|---|---|\n"
    "| memory | `memory.c`, `log.c` |\n"
    "| a walk over it | `walk.c` |\n"
    "\n"
    "| other | `engine.c` |\n";

/// The findings where log.c, memory.c and walk.c hold these texts.
std::vector<std::string> check(const std::string& log, const std::string& memory, const std::string& walk,
                               const std::string& readme = page) {
  return places(check_kernel_layers(tree_of({{"kernel/README.md", readme},
                                             {"kernel/model/log.c", log},
                                             {"kernel/model/memory.c", memory},
                                             {"kernel/model/walk.c", walk}})));
}

TEST(KernelLayers, ACallToAnEarlierLayerPasses) {
  EXPECT_THAT(check("", "int page(void)\n{\n\treturn 1;\n}\n", "int walk(void)\n{\n\treturn page();\n}\n"),
              IsEmpty());
}

TEST(KernelLayers, ACallToALaterLayerFails) {
  EXPECT_THAT(check("", "int page(void)\n{\n\treturn walk();\n}\n", "int walk(void)\n{\n\treturn 1;\n}\n"),
              ElementsAre("kernel/model/memory.c:3"));
}

TEST(KernelLayers, TwoFilesThatCallEachOtherFailInOneLayerToo) {
  EXPECT_THAT(check("void say(void)\n{\n\tpage();\n}\n", "void page(void)\n{\n\tsay();\n}\n", ""),
              ElementsAre("kernel/model/log.c:3", "kernel/model/memory.c:3"));
}

TEST(KernelLayers, AFunctionThatIsHandedOverCounts) {
  EXPECT_THAT(check("", "int page(void)\n{\n\tstart(walk);\n}\n", "int walk(void)\n{\n\treturn 1;\n}\n"),
              ElementsAre("kernel/model/memory.c:3"));
}

TEST(KernelLayers, AVariableOfALaterLayerFails) {
  EXPECT_THAT(check("", "int page(void)\n{\n\treturn walks[0];\n}\n", "struct walk *walks[2];\n"),
              ElementsAre("kernel/model/memory.c:3"));
  EXPECT_THAT(
      check("", "int page(void)\n{\n\treturn rules.first;\n}\n", "struct rules rules = { .first = 1 };\n"),
      ElementsAre("kernel/model/memory.c:3"));
}

TEST(KernelLayers, WhatIsStaticOrAMemberOrTheFilesOwnPasses) {
  EXPECT_THAT(
      check("", "int page(void)\n{\n\treturn walk;\n}\n", "static int walk(void)\n{\n\treturn 1;\n}\n"),
      IsEmpty());
  EXPECT_THAT(check("", "int page(void)\n{\n\treturn a.walk + b->walk;\n}\n", "int walk(void)\n{\n}\n"),
              IsEmpty());
  EXPECT_THAT(check("", "static int walk(void)\n{\n\treturn walk();\n}\n", "int walk(void)\n{\n}\n"),
              IsEmpty());
}

TEST(KernelLayers, AFileWithoutALayerFails) {
  EXPECT_THAT(places(check_kernel_layers(tree_of(
                  {{"kernel/README.md", "| layer of `model` | files |\n"}, {"kernel/model/engine.c", ""}}))),
              ElementsAre("kernel/model/engine.c:1"));
  EXPECT_THAT(places(check_kernel_layers(tree_of({{"kernel/model/engine.c", ""}}))),
              ElementsAre("kernel/model/engine.c:1"));
}

TEST(KernelLayers, ANameWithoutAFileOrInTwoRowsFails) {
  const std::string text =
      "| layer of `model` | files |\n|---|---|\n| a | `log.c`, `gone.c` |\n| b | `memory.c`, `walk.c`, "
      "`log.c` |\n";
  EXPECT_THAT(check("", "", "", text), ElementsAre("kernel/README.md:3", "kernel/README.md:4"));
}

TEST(KernelLayers, WhatAFileDefines) {
  const KernelNames names = kernel_names(
      "struct tag {\n\tint member;\n};\n"
      "typedef int number;\n"
      "extern int elsewhere;\n"
      "int declared(void);\n"
      "static struct tag hidden = { 1 };\n"
      "const struct tag shown[] = { { 1 }, { 2 } };\n"
      "static int local(void (*call)(int value))\n{\n\tif (1) { return 2; }\n}\n"
      "struct tag *offered(int a)\n{\n\tint inner = 1;\n}\n"
      "MACRO(thing);\n"
      "int last;\n");
  EXPECT_THAT(names.offered, UnorderedElementsAre("shown", "offered", "last"));
  EXPECT_THAT(names.own, UnorderedElementsAre("shown", "offered", "last", "hidden", "local"));
}

}  // namespace
}  // namespace firebreak::tidy
