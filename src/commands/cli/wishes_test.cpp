// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/wishes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace firebreak::cli {
namespace {

using testing::HasSubstr;

const std::vector<std::string> two{"GPU-a1", "GPU-b2"};

TEST(GpuWish, IsTheGpuOfThatNumberOrUuid) {
  EXPECT_EQ(gpu_wish("0", two)->gpu, "GPU-a1");
  EXPECT_EQ(gpu_wish("1", two)->gpu, "GPU-b2");
  EXPECT_EQ(gpu_wish("GPU-b", two)->gpu, "GPU-b");
  EXPECT_EQ(gpu_wish("1", two)->note, "");
  EXPECT_EQ(gpu_wish("0", {})->gpu, "") << "it is not known which that is";
}

TEST(GpuWish, IsTheFirstOfSeveralAndSaysSo) {
  const auto wish = gpu_wish("1,0", two);
  EXPECT_EQ(wish->gpu, "GPU-b2");
  EXPECT_THAT(wish->note, HasSubstr("CUDA_VISIBLE_DEVICES='1,0' names several GPUs"));
}

TEST(GpuWish, IsNoGpuAtAllWhereCudaWouldShowNone) {
  for (const char* each : {"", "-1", "NoDevFiles", "none", "-1,0", "1x"}) {
    const auto wish = gpu_wish(each, two);
    EXPECT_TRUE(wish->hides_all) << each;
    EXPECT_THAT(wish->note, HasSubstr("hides all GPUs")) << each;
    EXPECT_EQ(wish->gpu, "") << each;
  }
}

TEST(GpuWish, CannotBeOneThatIsNotThereNorAPartOfOne) {
  EXPECT_EQ(gpu_wish("2", two).error().code, ErrorCode::NotFound);
  EXPECT_EQ(gpu_wish("18446744073709551615", two).error().code, ErrorCode::NotFound);
  EXPECT_EQ(gpu_wish("MIG-c3", two).error().code, ErrorCode::Unsupported);
  EXPECT_THAT(gpu_wish("2", two).error().message, HasSubstr("CUDA_VISIBLE_DEVICES='2'"));
}

TEST(ShareWish, IsAWholePercentageOfAtLeastOne) {
  EXPECT_EQ(share_wish("25").percent, 25u);
  EXPECT_EQ(share_wish("100").percent, 100u);
  EXPECT_EQ(share_wish("12.9").percent, 12u);
  EXPECT_EQ(share_wish("0.4").percent, 1u);
  EXPECT_EQ(share_wish("25").note, "");
  EXPECT_EQ(share_wish("25.0").note, "");
  EXPECT_EQ(share_wish("33.3").note, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE='33.3' is taken as 33");
}

TEST(ShareWish, IsNoneOtherwiseAndSaysSo) {
  for (const char* each : {"", "0", "-3", "101", "1e9", "all", "25 %", "nan", "inf"}) {
    EXPECT_EQ(share_wish(each).percent, 0u) << each;
    EXPECT_THAT(share_wish(each).note, HasSubstr("is not heeded")) << each;
  }
}

}  // namespace
}  // namespace firebreak::cli
