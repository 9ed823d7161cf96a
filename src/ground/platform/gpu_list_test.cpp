// SPDX-License-Identifier: Apache-2.0
#include "ground/platform/gpu_list.h"

#include <gmock/gmock.h>

#include "tests/doubles/os/fake_kernel.h"

namespace firebreak::platform {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(GpuList, ReadsTheDriversProcfs) {
  os::FakeKernel kernel;
  for (const char* gpu : {"0000:00:06.0", "0000:00:05.0"}) {
    kernel.set_file(std::string("/proc/driver/nvidia/gpus/") + gpu + "/information",
                    std::string("Model: \t\t NVIDIA H100\nIRQ:   \t\t 11\nGPU UUID: \t GPU-adca3550-") +
                        gpu[9] + "\nVideo BIOS: \t 96\n");
  }
  const auto listed = listed_gpus(kernel);
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0].uuid, "GPU-adca3550-5");
  EXPECT_EQ(listed[0].pci, "0000:00:05.0") << "as NVML counts them";
  EXPECT_EQ(listed[1].uuid, "GPU-adca3550-6");
}

TEST(GpuList, IsEmptyWithoutADriver) {
  os::FakeKernel kernel;
  EXPECT_THAT(listed_gpus(kernel), IsEmpty());
}

TEST(ChooseGpu, TakesHowAUuidBegins) {
  EXPECT_EQ(choose_gpu({"GPU-12", "GPU-34"}, "GPU-3").value(), "GPU-34");
  EXPECT_EQ(choose_gpu({}, "GPU-3").value(), "GPU-3");
}

TEST(ChooseGpu, AnInstanceOfMigIsNone) {
  for (const std::vector<std::string>& there : {std::vector<std::string>{}, {"GPU-12"}}) {
    const auto chosen = choose_gpu(there, "MIG-12345678-0000-0000-0000-000000000000");
    ASSERT_FALSE(chosen);
    EXPECT_EQ(chosen.error().code, ErrorCode::Unsupported);
    EXPECT_THAT(to_string(chosen.error()), HasSubstr("whole GPU"));
  }
}

TEST(ChooseGpu, NamesThoseThatThereAre) {
  const auto none = choose_gpu({"GPU-12", "GPU-34"}, "0");
  ASSERT_FALSE(none);
  EXPECT_EQ(to_string(none.error()), "there is no GPU '0' (there is GPU-12, GPU-34)");
  const auto several = choose_gpu({"GPU-12", "GPU-13"}, "GPU-1");
  ASSERT_FALSE(several);
  EXPECT_THAT(several.error().message, HasSubstr("several GPUs begin with 'GPU-1'"));
}

}  // namespace
}  // namespace firebreak::platform
