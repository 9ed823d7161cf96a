// SPDX-License-Identifier: Apache-2.0
#include "ground/os/processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "ground/os/real_kernel.h"
#include "tests/doubles/os/fake_kernel.h"

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

TEST(Processes, HaveANumberInEachOfTheirPidNamespaces) {
  EXPECT_THAT(numbers_in("Name:\tx\nNSpid:\t4711\t13\t1\nNSpgid:\t4711\n"), ElementsAre(4711, 13, 1));
  EXPECT_THAT(numbers_in("Name:\tx\nPid:\t4711\n"), testing::IsEmpty());
  EXPECT_THAT(numbers_in("Name:\tx\nNSpid:\t4711\t"), ElementsAre(4711));
}

TEST(Processes, AreFoundByTheirNumbersInTheNamespaceOfTheirParent) {
  FakeKernel kernel;
  const auto add = [&](pid_t pid, pid_t parent, const std::string& numbers) {
    kernel.add_process(pid);
    kernel.set_file(proc_folder(pid) + "/status",
                    "Name:\tx\nPPid:\t" + std::to_string(parent) + "\nNSpid:" + numbers + "\n");
  };
  add(100, 1, "\t100");
  add(200, 100, "\t200\t1");
  add(300, 200, "\t300\t7");
  add(400, 200, "\t400\t8\t1");
  add(7, 1, "\t7");
  EXPECT_FALSE(is_in_inner_namespace(kernel, 100));
  EXPECT_TRUE(is_in_inner_namespace(kernel, 200));
  EXPECT_FALSE(is_in_inner_namespace(kernel, 999)) << "it is gone";
  EXPECT_EQ(find_numbered(kernel, 200, 1), 200);
  EXPECT_EQ(find_numbered(kernel, 200, 7), 300) << "not ours of that number";
  EXPECT_EQ(find_numbered(kernel, 200, 8), 400) << "also where it is in a namespace of its own";
  EXPECT_EQ(find_numbered(kernel, 200, 300), std::nullopt);
  EXPECT_EQ(find_numbered(kernel, 999, 7), std::nullopt);
}

}  // namespace
}  // namespace firebreak::os
