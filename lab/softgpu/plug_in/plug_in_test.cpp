// SPDX-License-Identifier: Apache-2.0
#include "ground/platform/plug_in.h"

#include <gmock/gmock.h>

#include "ground/os/self.h"

namespace firebreak::platform {
namespace {

TEST(PlugIn, IsLoadedWhereItIsAskedFor) {
  const auto platform = choose(testing::TempDir() + "/plug-in", "soft");
  ASSERT_TRUE(platform) << to_string(platform.error());
  EXPECT_EQ(platform->gpu, Gpu::Soft);
  EXPECT_THAT(platform->environment, testing::Contains(testing::Pair("FIREBREAK_GPU", "soft")));
  EXPECT_THAT(platform->kernel->uvm_link_target(), testing::HasSubstr("memfd"));
}

TEST(PlugIn, ItsGpusHaveUuids) {
  const auto one = choose(testing::TempDir() + "/plug-in", "soft");
  ASSERT_TRUE(one) << to_string(one.error());
  EXPECT_THAT(one->gpu_uuids, testing::ElementsAre("GPU-66697265-6272-6561-6b2d-736f66742d30"));
  const os::EnvironmentScope two(os::EnvironmentScope::Variables{{"FIREBREAK_SOFTGPU_COUNT", "2"}});
  const auto platform = choose(testing::TempDir() + "/plug-in", "soft");
  EXPECT_THAT(platform->gpu_uuids, testing::ElementsAre("GPU-66697265-6272-6561-6b2d-736f66742d30",
                                                        "GPU-66697265-6272-6561-6b2d-736f66742d31"));
  EXPECT_EQ(find_gpu(*one, "GPU-6669").value(), "GPU-66697265-6272-6561-6b2d-736f66742d30");
  EXPECT_EQ(find_gpu(*platform, "GPU-66697265-6272-6561-6b2d-736f66742d31").value(),
            "GPU-66697265-6272-6561-6b2d-736f66742d31");
}

}  // namespace
}  // namespace firebreak::platform
