// SPDX-License-Identifier: Apache-2.0
// Faults of the device exist where the driver itself offers to raise them, which no real driver does.
#include "inject/catalogue.h"
#include "tests/softgpu/gpu_test.h"

namespace firebreak::test {
namespace {

std::vector<const inject::Kind*> device_kinds() {
  std::vector<const inject::Kind*> kinds;
  for (const inject::Kind* kind : inject::catalogue()) {
    if (kind->fault_class == fault::FaultClass::Device) kinds.push_back(kind);
  }
  return kinds;
}

TEST(DeviceFault, IsRefusedByADriverThatIsNotTheSoftwareGpus) {
  choose_driver();
  const auto driver = must(cuda::Driver::open(FIREBREAK_PLAIN_DRIVER));
  const auto context = must(cuda::Context::create(must(cuda::Device::get(*driver, 0))));
  EXPECT_EQ(device_kinds().size(), 6U);
  for (const inject::Kind* kind : device_kinds()) {
    const auto injection = kind->prepare(*driver, context.view(), {});
    ASSERT_FALSE(injection) << kind->name;
    EXPECT_EQ(injection.error().code, ErrorCode::Unsupported);
    EXPECT_THAT(injection.error().message, ::testing::HasSubstr("never raised on a real GPU"));
  }
  EXPECT_TRUE(context->synchronize());
}

TEST(DeviceFault, IsPreparedOnTheSoftwareGpuAndHarmsNobodyUntilItIsRaised) {
  if (!choose_driver()) GTEST_SKIP() << "this is no software GPU";
  const auto driver = must(cuda::Driver::open());
  const auto context = must(cuda::Context::create(must(cuda::Device::get(*driver, 0))));
  for (const inject::Kind* kind : device_kinds()) {
    const auto injection = kind->prepare(*driver, context.view(), {});
    EXPECT_TRUE(injection) << kind->name << ": " << to_string(injection.error());
  }
  EXPECT_TRUE(context->synchronize());
}

}  // namespace
}  // namespace firebreak::test
