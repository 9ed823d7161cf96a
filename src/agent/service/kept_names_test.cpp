// SPDX-License-Identifier: Apache-2.0
#include "agent/service/kept_names.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <vector>

namespace firebreak::agent {
namespace {

constexpr std::size_t longest_string_of_an_environment = std::size_t{128} * 1024;

std::vector<std::string> names_of(int tenant) {
  return {fmt::format("{:063}/page", tenant), fmt::format("{:063}/state", tenant)};
}

TEST(KeptNames, AreNoMoreThanAnEnvironmentTakes) {
  KeptNames kept;
  std::string variable = "LISTEN_FDNAMES=";
  int tenants = 0;
  for (; kept.room_for(names_of(tenants)); ++tenants) {
    for (const std::string& name : names_of(tenants)) {
      kept.add(name);
      variable += name + ":";
    }
    ASSERT_LT(variable.size(), longest_string_of_an_environment) << "after " << tenants;
  }
  EXPECT_GT(tenants, 800);
  const auto refused = kept.room_for(names_of(tenants));
  EXPECT_EQ(refused.error().code, ErrorCode::ResourceExhausted);
  EXPECT_TRUE(kept.room_for(names_of(0))) << "it is there";
  for (const std::string& name : names_of(0)) kept.remove(name);
  EXPECT_TRUE(kept.room_for(names_of(tenants))) << "there is room again";
}

TEST(KeptNames, TheSameNameCountsOnce) {
  KeptNames kept;
  kept.add("a");
  kept.add("a");
  EXPECT_EQ(kept.bytes(), 2U);
  kept.remove("a");
  kept.remove("a");
  EXPECT_EQ(kept.bytes(), 0U);
}

}  // namespace
}  // namespace firebreak::agent
