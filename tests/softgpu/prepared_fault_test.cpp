// SPDX-License-Identifier: Apache-2.0
// A fault that is prepared and never raised does nothing.
#include <cstdint>
#include <span>

#include "inject/catalogue.h"
#include "program/cuda/copy.h"
#include "program/cuda/device_buffer.h"
#include "tests/softgpu/gpu_test.h"

namespace firebreak::test {
namespace {

using PreparedFault = GpuTest;

TEST_F(PreparedFault, HarmsNobodyUntilItIsRaised) {
  inject::Options options;
  int kills = 0;
  options.end_process = [&kills](inject::Ending) { ++kills; };
  for (const inject::Kind* kind : inject::catalogue()) {
    SCOPED_TRACE(kind->name);
    const auto injection = kind->prepare(driver(), context().view(), options);
    ASSERT_TRUE(injection) << to_string(injection.error());
    EXPECT_TRUE(context()->synchronize());
  }
  EXPECT_TRUE(context()->synchronize());
  EXPECT_EQ(kills, 0);
}

TEST_F(PreparedFault, SigkillWantsToKnowHow) {
  const auto injection = inject::find("sigkill")->prepare(driver(), context().view(), {});
  ASSERT_FALSE(injection);
  EXPECT_EQ(injection.error().code, ErrorCode::InvalidArgument);
}

TEST_F(PreparedFault, StrayAddressIsTheCallersWhereGiven) {
  // A store to memory of our own is no fault at all.
  const auto buffer = must(cuda::DeviceBuffer::allocate(driver(), sizeof(std::uint32_t)));
  inject::Options options;
  options.stray_address = buffer.address();
  const auto injection = must(inject::find("unmapped-store")->prepare(driver(), context().view(), options));
  const inject::RaisedFault report = injection->raise();
  EXPECT_EQ(report.answered, CUDA_SUCCESS) << report.error_name;
  EXPECT_LE(report.launched_at_ns, report.answered_at_ns);
  std::uint32_t stored = 0;
  must(cuda::copy_to_host(driver(), std::as_writable_bytes(std::span(&stored, 1)), buffer.address()));
  EXPECT_EQ(stored, 7U);
}

}  // namespace
}  // namespace firebreak::test
