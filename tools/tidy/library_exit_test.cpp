// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/tidy/testing.h"

namespace firebreak::tidy {
namespace {

std::vector<std::string> check(const std::string& path, const std::string& text) {
  return places(check_library_exit(tree_of({{path, text}})));
}

TEST(LibraryExit, EndingTheProcessFailsInALibrary) {
  EXPECT_THAT(
      check("src/agent/tenants/vault/a.cpp", "void f() {\n  std::abort();\n  exit(1);\n  ::_exit(2);\n}\n"),
      testing::ElementsAre("src/agent/tenants/vault/a.cpp:2", "src/agent/tenants/vault/a.cpp:3",
                           "src/agent/tenants/vault/a.cpp:4"));
}

TEST(LibraryExit, TheCommandAndMembersMay) {
  EXPECT_THAT(check("src/commands/cli/main.cpp", "void f() { exit(1); }"), testing::IsEmpty());
  EXPECT_THAT(check("lab/commands/main.cpp", "void f() { exit(1); }"), testing::IsEmpty());
  EXPECT_THAT(check("lab/stage/a.cpp", "void f() { exit(1); }"), testing::ElementsAre("lab/stage/a.cpp:1"));
  EXPECT_THAT(check("src/agent/tenants/pair/a.cpp", "void f() { transfer.abort(); on_exit(1); }"),
              testing::IsEmpty());
}

}  // namespace
}  // namespace firebreak::tidy
