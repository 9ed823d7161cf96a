// SPDX-License-Identifier: Apache-2.0
#include "program/cuda/device.h"

#include "tests/softgpu/gpu_test.h"

namespace firebreak::test {
namespace {

using DeviceOnDriver = GpuTest;

TEST_F(DeviceOnDriver, SaysWhatItIs) {
  EXPECT_GE(must(cuda::Device::count(driver())), 1);
  const auto info = must(device().info());
  EXPECT_FALSE(info.name.empty());
  EXPECT_THAT(info.uuid, ::testing::MatchesRegex("GPU-[0-9a-f-]{36}"));
  EXPECT_THAT(info.pci_bus_id, ::testing::MatchesRegex("[0-9A-Fa-f]+:[0-9A-Fa-f]+:[0-9A-Fa-f]+.[0-9]"));
  EXPECT_GE(info.driver_version, cuda::api_version);
  EXPECT_GE(info.compute_capability_major, 7);
  EXPECT_GT(info.multiprocessors, 0);
  EXPECT_GT(info.total_memory_bytes, 0U);
}

TEST_F(DeviceOnDriver, AbsentOrdinalIsAnArgumentError) {
  const auto absent = cuda::Device::get(driver(), 9999);
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, ErrorCode::InvalidArgument);
  EXPECT_THAT(absent.error().message, ::testing::HasSubstr("CUDA_ERROR_INVALID_DEVICE (101)"));
}

}  // namespace
}  // namespace firebreak::test
