// SPDX-License-Identifier: Apache-2.0
/// The main job for each way in which a GPU falls: three acts, all claims observed, nothing left behind. A
/// play takes seconds, so of the kinds that differ only in where an access goes there is one; `firebreak-lab
/// demo
/// --fault all` plays every kind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "inject/catalogue.h"
#include "tests/demo/firebreak_program.h"

namespace firebreak::tests {
namespace {

struct DemoKinds : testing::TestWithParam<const inject::Kind*> {};

TEST_P(DemoKinds, OnlyTheRogueDies) {
  Sandbox sandbox;
  const std::string json_path = sandbox.file("demo.json");
  const auto result = sandbox.run(
      "firebreak-lab", {"demo", "--fault", std::string(GetParam()->name), "--steps", "30", "--parked", "none",
                        "--json", json_path, "--html", sandbox.file("demo.html")});
  EXPECT_TRUE(result.status.clean()) << result.output;
  EXPECT_THAT(sandbox.left_behind(), testing::IsEmpty());

  std::ifstream file(json_path);
  const auto json = nlohmann::json::parse(file, nullptr, false);
  ASSERT_TRUE(json.is_object()) << result.output;
  EXPECT_EQ(json["fault"], GetParam()->name);
  ASSERT_EQ(json["acts"].size(), 3u);
  for (const auto& outcome : json["acts"][2]["outcomes"]) {
    EXPECT_EQ(outcome["same_as_reference"], true);
    EXPECT_GT(outcome["output_bytes"], 0);
  }
  const bool spares_others = GetParam()->expectation.co_client == CUDA_SUCCESS;
  EXPECT_EQ(json["recoveries"].size(), spares_others ? 0u : 2u);
}

std::string name_of(const testing::TestParamInfo<const inject::Kind*>& info) {
  std::string name(info.param->name);
  std::ranges::replace(name, '-', '_');
  return name;
}

std::vector<const inject::Kind*> one_of_each_mechanism() {
  std::vector<const inject::Kind*> kinds;
  for (const char* name : {"unmapped-store-far", "unmapped-atomic-far", "read-only-store", "use-after-unmap",
                           "host-pointer", "bad-program-counter", "copy-engine-unmap", "write-value-unmap",
                           "misaligned-load", "shared-out-of-bounds", "non-canonical-address", "trap",
                           "illegal-instruction", "stack-overflow", "sigkill", "sigkill-endless", "exec"}) {
    kinds.push_back(inject::find(name));
  }
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(OneOfEachMechanism, DemoKinds, testing::ValuesIn(one_of_each_mechanism()), name_of);

TEST(DemoKind, OfTheDeviceIsRefusedWithTheReason) {
  Sandbox sandbox;
  const auto result = sandbox.run("firebreak-lab", {"demo", "--fault", "double-bit-ecc"});
  EXPECT_EQ(result.status.exit_code, 1);
  EXPECT_THAT(result.output, testing::HasSubstr("no play with 'double-bit-ecc'"));
}

}  // namespace
}  // namespace firebreak::tests
