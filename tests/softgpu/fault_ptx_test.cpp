// SPDX-License-Identifier: Apache-2.0
// Every kernel that faults on purpose is PTX that our own parser takes and every driver since CUDA 11.0.
#include <gtest/gtest.h>

#include "inject/catalogue.h"
#include "kernels/ptx/parse.h"

namespace firebreak::test {
namespace {

TEST(FaultPtx, IsValidAndForEveryDriver) {
  for (const inject::Kind* kind : inject::catalogue()) {
    if (kind->ptx.empty()) continue;
    const auto module = ptx::parse(kind->ptx, kind->name);
    ASSERT_TRUE(module) << to_string(module.error());
    EXPECT_EQ(module->version_major, 7U) << kind->name;
    EXPECT_EQ(module->version_minor, 0U) << kind->name;
    // Asynchronous copies and their barriers came with that one.
    const bool is_of_ampere =
        kind->ptx.find("cp.async") != kind->ptx.npos || kind->ptx.find("mbarrier") != kind->ptx.npos;
    EXPECT_EQ(module->target, is_of_ampere ? "sm_80" : "sm_70") << kind->name;
    EXPECT_EQ(module->address_size_bits, 64U) << kind->name;
  }
}

}  // namespace
}  // namespace firebreak::test
