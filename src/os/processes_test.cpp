// SPDX-License-Identifier: Apache-2.0
#include "os/processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "os/real_kernel.h"

namespace firebreak::os {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Optional;

constexpr std::string_view environment{"A=1\0BA=2\0A=x=y\0C", 16};

TEST(Processes, AreAllThatThisMachineShows) {
  RealKernel kernel;
  const auto pids = all_processes(kernel);
  EXPECT_THAT(pids, Contains(getpid()));
  EXPECT_THAT(pids, testing::Each(testing::Gt(0)));
}

TEST(Processes, HaveAnEnvironmentThatEndsWithANul) {
  RealKernel kernel;
  const std::string own = environment_of(kernel, getpid());
  ASSERT_FALSE(own.empty());
  EXPECT_EQ(own.back(), '\0');
  EXPECT_EQ(environment_of(kernel, -1), "");
}

TEST(Environment, IsTakenApartAtItsNuls) {
  std::vector<std::string> texts;
  for_each_text(environment, [&](std::string_view text) { texts.emplace_back(text); });
  EXPECT_THAT(texts, ElementsAre("A=1", "BA=2", "A=x=y", "C"));
}

TEST(Environment, TellsTheLastValueOfAWholeName) {
  EXPECT_THAT(variable_in(environment, "A"), Optional(std::string("x=y")));
  EXPECT_THAT(variable_in(environment, "BA"), Optional(std::string("2")));
  EXPECT_EQ(variable_in(environment, "B"), std::nullopt);
  EXPECT_EQ(variable_in(environment, "C"), std::nullopt);
  EXPECT_EQ(variable_in("", "A"), std::nullopt);
}

TEST(Processes, AChildIsFoundAtItsParent) {
  RealKernel kernel;
  EXPECT_THAT(children_of(kernel, ::getppid()), testing::Contains(::getpid()));
  EXPECT_THAT(children_of(kernel, ::getpid()), testing::Not(testing::Contains(::getppid())));
}

}  // namespace
}  // namespace firebreak::os
