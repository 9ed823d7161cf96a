// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/tidy/testing.h"

namespace firebreak::tidy {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// What is told where src/agent/faults/watch/xid.cpp, which links `links`, has this text.
std::vector<std::string> check(std::vector<std::string> links, const std::string& text) {
  auto base = target_of("firebreak_base", "src/ground/base", "log.cpp");
  auto layouts = target_of("firebreak_layouts", "src/shared/abi", "layouts.cpp");
  auto abi =
      target_of("firebreak_abi", "src/shared/abi", "wire.cpp", {"firebreak_layouts", "firebreak_base"});
  auto shared = target_of("shared", "src/shared", "shared.cpp", {}, TargetKind::Shared);
  auto watch = target_of("firebreak_watch", "src/agent/faults/watch", "xid.cpp", std::move(links));
  const auto tree = tree_of(
      {{"src/ground/base/log.h", ""},
       {"src/shared/abi/layouts.h", ""},
       {"src/shared/abi/wire.h", "#include \"shared/abi/layouts.h\"\n#include \"ground/base/log.h\"\n"},
       {"src/agent/faults/watch/CMakeLists.txt", "# licence\nfirebreak_library(watch SOURCES xid.cpp)\n"},
       {"src/agent/faults/watch/xid.cpp", text}},
      {base, layouts, abi, shared, watch});
  return places(check_unused_links(tree));
}

TEST(UnusedLinks, ALinkOfWhichSomethingIsIncludedPasses) {
  EXPECT_THAT(check({"firebreak_base"}, "#include \"ground/base/log.h\"\n"), IsEmpty());
}

TEST(UnusedLinks, ALinkOfWhichNothingIsIncludedFails) {
  EXPECT_THAT(check({"firebreak_base"}, ""), ElementsAre("src/agent/faults/watch/CMakeLists.txt:2"));
  EXPECT_THAT(check({"firebreak_base", "firebreak_abi"}, "#include \"ground/base/log.h\"\n"),
              ElementsAre("src/agent/faults/watch/CMakeLists.txt:2"));
}

TEST(UnusedLinks, APartOfTheSameFolderCountsAndAnotherFolderDoesNot) {
  EXPECT_THAT(check({"firebreak_abi"}, "#include \"shared/abi/layouts.h\"\n"), IsEmpty());
  EXPECT_THAT(check({"firebreak_abi"}, "#include \"ground/base/log.h\"\n"),
              ElementsAre("src/agent/faults/watch/CMakeLists.txt:2"));
}

TEST(UnusedLinks, ASharedLibraryIsLinkedForWhatItDoes) { EXPECT_THAT(check({"shared"}, ""), IsEmpty()); }

}  // namespace
}  // namespace firebreak::tidy
