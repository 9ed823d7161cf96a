// SPDX-License-Identifier: Apache-2.0
/// The demo's fourth act: unmodified programs in the domains of rogues that raise exceptions of an SM, on the
/// software GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/demo/firebreak_program.h"
#include "tests/demo/page_look.h"

namespace firebreak::tests {
namespace {

using testing::HasSubstr;

TEST(DemoParked, UnmodifiedNeighboursFinishBesideExceptionsOfSeveralKinds) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "one of its programs has the preload library: a sanitizer's runtime wants to be the first";
#endif
  Sandbox sandbox;
  const std::string json_path = sandbox.file("demo.json");
  const std::string html_path = sandbox.file("demo.html");
  const auto result =
      sandbox.run("firebreak-lab", {"demo", "--steps", "30", "--parked",
                                    "misaligned-load,trap,shared-out-of-bounds,stack-overflow", "--json",
                                    json_path, "--html", html_path});
  EXPECT_TRUE(result.status.clean()) << result.output;
  EXPECT_THAT(sandbox.left_behind(), testing::IsEmpty());

  std::ifstream file(json_path);
  const auto json = nlohmann::json::parse(file, nullptr, false);
  ASSERT_TRUE(json.is_object()) << result.output;
  ASSERT_EQ(json["acts"].size(), 4u);
  const auto& parked = json["acts"][3]["parked"];
  ASSERT_EQ(parked.size(), 4u);
  for (const auto& fault : parked) {
    EXPECT_EQ(fault["culprits"], nlohmann::json({fault["rogue_pid"]})) << fault;
    // The mover is a client of that domain still: the rogue's call could say that all was well.
    EXPECT_TRUE(fault["rogue"].is_null()) << fault;
    ASSERT_EQ(fault["neighbours"].size(), 2u);
    for (const auto& neighbour : fault["neighbours"]) {
      EXPECT_EQ(neighbour["domain"], fault["domain"]);
      EXPECT_EQ(neighbour["exit"]["status"], 0) << fault;
      EXPECT_EQ(neighbour["wrong_words"], 0) << fault;
      EXPECT_GT(neighbour["launches"], 1) << fault;
    }
    const auto& mover = fault["mover"];
    EXPECT_EQ(mover["domain"], fault["domain"]);
    EXPECT_NE(mover["moved_to"], fault["domain"]);
    EXPECT_NE(mover["moved_to"], "");
    EXPECT_EQ(mover["wrong_words"], 0) << fault;
    EXPECT_EQ(mover["error"], "") << fault;
    EXPECT_TRUE(mover["outlived_domain"]) << fault;
    EXPECT_TRUE(mover["protected_again"]) << fault;
    EXPECT_NE(fault["newcomer"]["domain"], fault["domain"]);
    EXPECT_EQ(fault["newcomer"]["wrong_words"], 0) << fault;
  }
  std::ifstream page(html_path);
  const std::string text{std::istreambuf_iterator<char>(page), std::istreambuf_iterator<char>()};
  EXPECT_THAT(text, HasSubstr("<h2>Act 4</h2>"));
#if FIREBREAK_HAS_PAGE  // what looks is installed beside what that page is made of
  const auto seen = look_at(html_path);
  ASSERT_TRUE(seen.is_object());
  expect_fits_narrow_screen(seen);
#endif
}

TEST(DemoParked, WhatIsNoExceptionIsRefusedWithTheReason) {
  Sandbox sandbox;
  const auto refused = sandbox.run("firebreak-lab", {"demo", "--parked", "trap,unmapped-store"});
  EXPECT_EQ(refused.status.exit_code, 1);
  EXPECT_THAT(refused.output, HasSubstr("'unmapped-store' is no exception of an SM"));
  const auto unknown = sandbox.run("firebreak-lab", {"demo", "--parked", "trep"});
  EXPECT_EQ(unknown.status.exit_code, 1);
  EXPECT_THAT(unknown.output, HasSubstr("trap"));
}

}  // namespace
}  // namespace firebreak::tests
