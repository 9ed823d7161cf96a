// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/tidy/testing.h"

namespace firebreak::tidy {
namespace {

std::vector<std::string> check(const std::string& path, const std::string& text) {
  return places(check_os_calls(tree_of({{path, text}})));
}

TEST(OsCalls, FailOutsideTheOsFolders) {
  EXPECT_THAT(
      check("src/agent/tenants/vault/vault.cpp", "void f() {\n  ::close(memfd_create(\"\", 0));\n}\n"),
      testing::ElementsAre("src/agent/tenants/vault/vault.cpp:2"));
  EXPECT_THAT(check("lab/workloads/decode/main.cpp", "void f() { pid_t child = fork(); }"),
              testing::ElementsAre("lab/workloads/decode/main.cpp:1"));
}

TEST(OsCalls, PassInTheOsFoldersAndInTests) {
  for (const char* path : {"src/ground/os/memory.cpp", "lab/softgpu/driver/vmm.cpp", "tests/leftovers.cpp",
                           "src/agent/domains/mps/mps_test.cpp", "kernel/proof/scene.c"}) {
    EXPECT_THAT(check(path, "void f() { ::mmap(0, 1, 2, 3, 4, 5); }"), testing::IsEmpty()) << path;
  }
}

TEST(OsCalls, OurOwnInterfaceAndTextPass) {
  EXPECT_THAT(check("src/agent/faults/watch/xid.cpp",
                    "void f(Kernel& k) { k.open(p, 0); k.ioctl(fd, 1, 0); log(\"fork() failed\"); }"),
              testing::IsEmpty());
  EXPECT_THAT(check("src/ground/base/clock.cpp", "// poll() wakes late\nauto f = std::bit_cast<int>(1);"),
              testing::IsEmpty());
}

TEST(OsCalls, AParsersAcceptPasses) {
  const auto findings = check_os_calls(
      tree_of({{"src/kernels/ptx/parser.h", "class Parser { bool accept(Token token); };"},
               {"src/kernels/ptx/parser.cpp", "void Parser::f() { if (accept(Comma)) g(); }"}}));
  EXPECT_THAT(findings, testing::IsEmpty());
}

}  // namespace
}  // namespace firebreak::tidy
