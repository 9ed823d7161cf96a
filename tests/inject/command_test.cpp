// SPDX-License-Identifier: Apache-2.0
/// `firebreak-lab inject` as people and programs use it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "inject/catalogue.h"
#include "tests/demo/firebreak_program.h"

namespace firebreak::tests {
namespace {

using testing::HasSubstr;

struct InjectCommand : testing::Test {
  Sandbox sandbox;

  os::ProgramResult inject(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "inject");
    return sandbox.run("firebreak-lab", arguments, {{"FIREBREAK_SOFTGPU_DIR", sandbox.file("gpu")}});
  }
};

TEST_F(InjectCommand, ListIsTheCatalogueAsData) {
  const auto result = inject({"--list", "--json"});
  EXPECT_TRUE(result.status.clean());
  const auto json = nlohmann::json::parse(result.output, nullptr, false);
  ASSERT_TRUE(json.is_object()) << result.output;
  ASSERT_EQ(json["kinds"].size(), inject::catalogue().size());
  for (std::size_t i = 0; i < json["kinds"].size(); ++i) {
    const auto& entry = json["kinds"][i];
    const inject::Kind& kind = *inject::catalogue()[i];
    EXPECT_EQ(entry["name"], kind.name);
    EXPECT_EQ(entry["class"], fault::to_string(kind.fault_class));
    EXPECT_EQ(entry["expectation"]["faulter"], static_cast<int>(kind.expectation.faulter));
    EXPECT_EQ(entry["expectation"]["xids"].size(), kind.expectation.xids.size());
    EXPECT_EQ(entry["expectation"]["first_seen_by"].is_null(), !inject::is_fault(kind));
    EXPECT_EQ(entry["not_in_the_demo_because"].is_null(), inject::is_demonstrable(kind));
  }
}

TEST_F(InjectCommand, ListForPeopleIsGroupedAndNamesWhatTheDemoLeavesOut) {
  const auto result = inject({"--list"});
  EXPECT_TRUE(result.status.clean());
  EXPECT_THAT(result.output, HasSubstr("\nMMU (replayable)\n  unmapped-store-far "));
  EXPECT_THAT(result.output, HasSubstr("\ndevice\n  double-bit-ecc "));
  EXPECT_THAT(result.output, HasSubstr("Not in `firebreak-lab demo`: double-bit-ecc"));
}

TEST_F(InjectCommand, AFaultLaterIsTheSameFault) {
  const auto result = inject({"misaligned-load", "--at-launch", "20", "--after-ms", "1", "--json"});
  EXPECT_EQ(result.status.exit_code, 3);
  const auto json = nlohmann::json::parse(result.output, nullptr, false);
  ASSERT_TRUE(json.is_object()) << result.output;
  EXPECT_EQ(json["answered"], "CUDA_ERROR_MISALIGNED_ADDRESS");
  EXPECT_EQ(json["as_expected"], true);
  EXPECT_LE(json["raised_ns"], json["answered_ns"]);
}

TEST_F(InjectCommand, WhatTheHardwareLetsPassIsNoFailure) {
  const auto result = inject({"unmapped-prefetch-far", "--at-launch", "3", "--json"});
  EXPECT_TRUE(result.status.clean()) << result.output;
}

TEST_F(InjectCommand, AProcessThatEndsSaysSoFirst) {
  const auto result = inject({"sigterm", "--json"});
  EXPECT_EQ(result.status.signal, SIGTERM);
  const auto json = nlohmann::json::parse(result.output, nullptr, false);
  ASSERT_TRUE(json.is_object()) << result.output;
  EXPECT_GT(json["raised_ns"], 0);
  EXPECT_TRUE(json["answered"].is_null());
}

TEST_F(InjectCommand, NobodyToldItToGo) {
  const auto result = inject({"trap", "--wait"});
  EXPECT_TRUE(result.status.clean());
  EXPECT_EQ(result.output, "prepared\n");
}

TEST_F(InjectCommand, WhatMakesNoSenseIsRefused) {
  EXPECT_THAT(inject({}).output, HasSubstr("KIND, --list or --schedule"));
  EXPECT_THAT(inject({"sigkil"}).output, HasSubstr("did you mean 'sigkill'?"));
  EXPECT_NE(inject({"trap", "--list"}).status.exit_code, 0);
  EXPECT_NE(inject({"trap", "--seed", "1"}).status.exit_code, 0);
  EXPECT_NE(inject({"trap", "--at-launch", "0"}).status.exit_code, 0);
  EXPECT_NE(inject({"trap", "--wait", "--json"}).status.exit_code, 0);
}

}  // namespace
}  // namespace firebreak::tests
