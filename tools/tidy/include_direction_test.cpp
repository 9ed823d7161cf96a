// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/tidy/testing.h"

namespace firebreak::tidy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> check(const std::string& path, const std::string& text) {
  return places(check_include_direction(tree_of({{path, text},
                                                 {"src/base/result.h", ""},
                                                 {"src/os/fd.h", ""},
                                                 {"src/cli/table.h", ""},
                                                 {"softgpu/devices/node.h", ""},
                                                 {"include/firebreak/firebreak.h", ""}})));
}

TEST(IncludeDirection, AlongTheArrowsPasses) {
  EXPECT_THAT(
      check("src/watch/xid.cpp", "#include <vector>\n#include \"os/fd.h\"\n#include \"base/result.h\"\n"),
      IsEmpty());
  EXPECT_THAT(check("src/client/join.cpp", "#include <firebreak/firebreak.h>\n"), IsEmpty());
  EXPECT_THAT(check("src/platform/soft.cpp", "#  include \"softgpu/devices/node.h\"\n"), IsEmpty());
}

TEST(IncludeDirection, AgainstTheArrowsFails) {
  EXPECT_THAT(check("src/base/log.cpp", "\n#include \"os/fd.h\"\n"), ElementsAre("src/base/log.cpp:2"));
  EXPECT_THAT(check("src/agent/run.cpp", "#include \"cli/table.h\"\n"), ElementsAre("src/agent/run.cpp:1"));
  EXPECT_THAT(check("src/base/log.cpp", "#include <firebreak/firebreak.h>\n"),
              ElementsAre("src/base/log.cpp:1"));
  EXPECT_THAT(check("src/os/real.cpp", "#include \"softgpu/devices/node.h\"\n"),
              ElementsAre("src/os/real.cpp:1"));
}

TEST(IncludeDirection, AnUnrootedIncludeFails) {
  EXPECT_THAT(check("src/os/real.cpp", "#include \"fd.h\"\n"), ElementsAre("src/os/real.cpp:1"));
  EXPECT_THAT(check("src/os/real.cpp", "#include \"../base/result.h\"\n"), ElementsAre("src/os/real.cpp:1"));
}

TEST(IncludeDirection, AFolderOutsideTheMapFails) {
  EXPECT_THAT(check("src/novelty/a.cpp", "#include \"os/fd.h\"\n"), ElementsAre("src/novelty/a.cpp:1"));
}

TEST(IncludeDirection, TheKernelPartIncludesAsTheKernelDoes) {
  EXPECT_THAT(check("kernel/isolation/src/a.c", "#include \"uvm_gpu.h\"\n"), IsEmpty());
}

TEST(IncludeDirection, CommentsAndStringsAreNoIncludes) {
  EXPECT_THAT(
      check("src/base/log.cpp", "// #include \"os/fd.h\"\nauto x = R\"(\n#include \"os/fd.h\"\n)\";\n"),
      IsEmpty());
}

}  // namespace
}  // namespace firebreak::tidy
