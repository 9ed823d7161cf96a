// SPDX-License-Identifier: Apache-2.0
#include "shared/dump_mode/mode.h"

#include <gtest/gtest.h>

namespace firebreak::park {
namespace {

std::string environ_of(const Environment& variables) {
  std::string all = std::string("HOME=/root") + '\0';
  for (const auto& [name, value] : variables) all += name + "=" + value + '\0';
  return all + "LAST=1" + '\0';
}

TEST(Mode, IsFoundInTheEnvironmentThatItWasPutInto) {
  EXPECT_EQ(dump_path_in(environ_of(mode_environment("/run/d/1.pipe"))), "/run/d/1.pipe");
}

TEST(Mode, EachOfItsVariablesIsNeeded) {
  const Environment all = mode_environment("/run/d/1.pipe");
  for (std::size_t without = 0; without < all.size(); ++without) {
    Environment some = all;
    some.erase(some.begin() + static_cast<std::ptrdiff_t>(without));
    EXPECT_EQ(dump_path_in(environ_of(some)), "") << all[without].first;
    Environment others = all;
    if (others[without].first == "CUDA_COREDUMP_FILE") continue;
    others[without].second = "something else";
    EXPECT_EQ(dump_path_in(environ_of(others)), "") << all[without].first;
  }
}

TEST(Mode, AVariableOfALongerNameIsAnother) {
  Environment all = mode_environment("/run/d/1.pipe");
  for (auto& [name, value] : all) name += "_2";
  EXPECT_EQ(dump_path_in(environ_of(all)), "");
}

// CUDA would print it on the standard error of every program of the domain, also of those that live.
TEST(Mode, PrintsNoProgress) {
  for (const auto& [name, value] : mode_environment("x")) EXPECT_NE(name, "CUDA_COREDUMP_SHOW_PROGRESS");
}

TEST(Mode, KnowsItsVariables) {
  for (const auto& [name, value] : mode_environment("x")) EXPECT_TRUE(is_of_mode(name)) << name;
  EXPECT_TRUE(is_of_mode("CUDA_COREDUMP_PIPE"));
  EXPECT_FALSE(is_of_mode("CUDA_VISIBLE_DEVICES"));
}

TEST(Mode, AnEnvironmentThatWasCutShortIsNone) {
  EXPECT_EQ(dump_path_in(""), "");
  EXPECT_EQ(dump_path_in("CUDA_COREDUMP_FILE"), "");
  EXPECT_EQ(dump_path_in("CUDA_COREDUMP_FILE=/x"), "");
}

}  // namespace
}  // namespace firebreak::park
