// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/tidy/testing.h"

namespace firebreak::tidy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<Target> targets() {
  return {target_of("base", "src/ground/base", "log.cpp"),
          target_of("os", "src/ground/os", "real.cpp", {"base"}),
          target_of("watch", "src/agent/faults/watch", "xid.cpp", {"os"}),
          target_of("watch_test", "src/agent/faults/watch", "xid_test.cpp", {"watch"}, TargetKind::Test),
          target_of("shared", "src/shared", "shared.cpp", {"os"}, TargetKind::Shared),
          target_of("devices", "lab/softgpu/devices", "node.cpp"),
          target_of("plug_in", "lab/softgpu/plug_in", "a.cpp", {"devices"})};
}

std::vector<std::string> check(const std::string& path, const std::string& text) {
  return places(check_include_direction(tree_of({{path, text},
                                                 {"src/ground/base/result.h", ""},
                                                 {"src/ground/base/log.h", ""},
                                                 {"src/ground/os/fd.h", ""},
                                                 {"src/agent/faults/watch/xid.h", ""},
                                                 {"lab/softgpu/devices/node.h", ""}},
                                                targets())));
}

TEST(IncludeDirection, AlongTheLinksPasses) {
  EXPECT_THAT(check("src/agent/faults/watch/xid.cpp",
                    "#include <vector>\n#include \"ground/os/fd.h\"\n#include \"ground/base/result.h\"\n"),
              IsEmpty());
  EXPECT_THAT(check("src/agent/faults/watch/xid_test.cpp",
                    "#include \"agent/faults/watch/xid.h\"\n#include \"ground/base/log.h\"\n"),
              IsEmpty());
  EXPECT_THAT(check("lab/softgpu/plug_in/a.cpp", "#  include \"softgpu/devices/node.h\"\n"), IsEmpty());
}

TEST(IncludeDirection, WhatTheTargetDoesNotLinkFails) {
  EXPECT_THAT(check("src/ground/base/log.cpp", "\n#include \"ground/os/fd.h\"\n"),
              ElementsAre("src/ground/base/log.cpp:2"));
  EXPECT_THAT(check("src/ground/base/log.cpp", "#include <ground/os/fd.h>\n"),
              ElementsAre("src/ground/base/log.cpp:1"));
  EXPECT_THAT(check("src/ground/os/real.cpp", "#include \"softgpu/devices/node.h\"\n"),
              ElementsAre("src/ground/os/real.cpp:1"));
  EXPECT_THAT(check("src/ground/os/real.cpp", "#include \"lab/softgpu/devices/node.h\"\n"),
              ElementsAre("src/ground/os/real.cpp:1"));
}

TEST(IncludeDirection, HeadersAreCheckedAsWell) {
  EXPECT_THAT(check("src/ground/base/units.h", "#include \"ground/os/fd.h\"\n"),
              ElementsAre("src/ground/base/units.h:1"));
  EXPECT_THAT(check("src/ground/os/units.h", "#include \"ground/base/log.h\"\n"), IsEmpty());
}

TEST(IncludeDirection, WhatALinkDoesNotPassOnFails) {
  auto targets = std::vector{target_of("base", "src/ground/base", "log.cpp"),
                             target_of("os", "src/ground/os", "real.cpp", {"base"}),
                             target_of("watch", "src/agent/faults/watch", "xid.cpp", {"os"})};
  targets[1].passed_on.clear();
  const auto tree = tree_of({{"src/ground/base/log.h", ""},
                             {"src/ground/os/real.cpp", "#include \"ground/base/log.h\"\n"},
                             {"src/agent/faults/watch/xid.cpp", "#include \"ground/base/log.h\"\n"}},
                            targets);
  EXPECT_THAT(places(check_include_direction(tree)), ElementsAre("src/agent/faults/watch/xid.cpp:1"));
}

TEST(IncludeDirection, AnUnrootedIncludeFails) {
  EXPECT_THAT(check("src/ground/os/real.cpp", "#include \"fd.h\"\n"),
              ElementsAre("src/ground/os/real.cpp:1"));
  EXPECT_THAT(check("src/ground/os/real.cpp", "#include \"../base/result.h\"\n"),
              ElementsAre("src/ground/os/real.cpp:1"));
}

TEST(IncludeDirection, AFolderThatCMakeDoesNotBuildFails) {
  EXPECT_THAT(check("src/novelty/a.cpp", "#include <vector>\n"), ElementsAre("src/novelty/a.cpp:1"));
}

TEST(IncludeDirection, TheKernelPartIncludesAsTheKernelDoes) {
  EXPECT_THAT(check("kernel/isolation/src/a.c", "#include \"uvm_gpu.h\"\n"), IsEmpty());
}

TEST(IncludeDirection, CommentsAndStringsAreNoIncludes) {
  EXPECT_THAT(check("src/ground/base/log.cpp",
                    "// #include \"ground/os/fd.h\"\nauto x = R\"(\n#include \"ground/os/fd.h\"\n)\";\n"),
              IsEmpty());
}

}  // namespace
}  // namespace firebreak::tidy
