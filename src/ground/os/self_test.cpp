// SPDX-License-Identifier: Apache-2.0
#include "ground/os/self.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "ground/os/host_name.h"

namespace firebreak::os {
namespace {

TEST(Self, KnowsItsOwnProgram) {
  EXPECT_EQ(own_pid(), ::getpid());
  const std::string path = executable_path().value();
  EXPECT_TRUE(path.ends_with("/os_test")) << path;
}

TEST(Self, FindsProgramsAsAShellWould) {
  EXPECT_TRUE(find_program("true")->ends_with("/true"));
  EXPECT_FALSE(find_program("no-such-program-anywhere"));
  EXPECT_FALSE(find_program(""));
  EXPECT_FALSE(find_program("/tmp"));
  EXPECT_EQ(find_program(executable_path().value()), executable_path().value());
}

TEST(Self, KnowsTheNameOfItsHost) {
  std::ifstream kernels("/proc/sys/kernel/hostname");
  std::string name;
  std::getline(kernels, name);
  EXPECT_EQ(host_name(), name);
  EXPECT_NE(name, "");
}

TEST(Self, ReadsTheEnvironment) {
  EXPECT_TRUE(environment_variable("PATH"));
  EXPECT_FALSE(environment_variable("FIREBREAK_NO_SUCH_VARIABLE"));
}

TEST(Self, PutsTheEnvironmentBackAsItWas) {
  const char* fresh = "FIREBREAK_TEST_FRESH";
  const char* there = "FIREBREAK_TEST_THERE";
  const EnvironmentScope outer(EnvironmentScope::Variables{{there, "before"}});
  {
    const EnvironmentScope inner(EnvironmentScope::Variables{{fresh, "1"}, {there, "2"}, {there, "3"}});
    EXPECT_EQ(environment_variable(fresh), "1");
    EXPECT_EQ(environment_variable(there), "3");
  }
  EXPECT_FALSE(environment_variable(fresh));
  EXPECT_EQ(environment_variable(there), "before");
}

}  // namespace
}  // namespace firebreak::os
