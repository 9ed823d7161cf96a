// SPDX-License-Identifier: Apache-2.0
#include "ground/pages/nearest.h"

#include <gtest/gtest.h>

namespace firebreak::pages {
namespace {

const std::vector<std::string> commands{"cdi", "doctor", "run", "report", "status", "stop", "top"};

TEST(Nearest, IsWhatOneSlipAwayIsCalled) {
  EXPECT_EQ(nearest("rnu", commands), "run");
  EXPECT_EQ(nearest("statsu", commands), "status");
  EXPECT_EQ(nearest("staus", commands), "status");
  EXPECT_EQ(nearest("doctorr", commands), "doctor");
  EXPECT_EQ(nearest("--piar", {"--pair", "--spare", "--standby"}), "--pair");
}

TEST(Nearest, IsNothingWhereNothingIsNear) {
  EXPECT_EQ(nearest("frobnicate", commands), "");
  EXPECT_EQ(nearest("xyz", commands), "");
  EXPECT_EQ(nearest("", commands), "");
  EXPECT_EQ(nearest(std::string(65, 'r'), commands), "");
  EXPECT_EQ(nearest("run", {}), "");
}

TEST(Nearest, IsTheFirstOfThoseThatAreEquallyNear) { EXPECT_EQ(nearest("sto", {"stop", "stow"}), "stop"); }

}  // namespace
}  // namespace firebreak::pages
