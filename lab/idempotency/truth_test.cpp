// SPDX-License-Identifier: Apache-2.0
#include "idempotency/truth.h"

#include <gtest/gtest.h>

#include <vector>

namespace firebreak::idempotency {
namespace {

using softgpu::GpuAccess;
using softgpu::ObservedAccess;

ObservedAccess seen(std::uint64_t thread, GpuAccess access, std::uint64_t address, std::uint32_t line) {
  return {address, 4, access, line, thread};
}

TEST(TraceTruth, AWriteOfWhatAnotherThreadReadsCountsInEachOrder) {
  const std::vector<ObservedAccess> first_written{seen(0, GpuAccess::Store, 100, 1),
                                                  seen(1, GpuAccess::Load, 102, 2)};
  const TraceTruth truth = find_truth(first_written);
  EXPECT_FALSE(truth.is_idempotent);
  EXPECT_EQ(truth.read_line, 2U);
  EXPECT_EQ(truth.write_line, 1U);
}

TEST(TraceTruth, AThreadMayReadWhatItWrote) {
  EXPECT_TRUE(find_truth(std::vector{seen(0, GpuAccess::Store, 100, 1), seen(0, GpuAccess::Load, 100, 2)})
                  .is_idempotent);
  EXPECT_FALSE(find_truth(std::vector{seen(0, GpuAccess::Load, 100, 1), seen(0, GpuAccess::Store, 100, 2)})
                   .is_idempotent);
}

TEST(TraceTruth, ApartIsFineAndAtomicsAreNot) {
  EXPECT_TRUE(find_truth(std::vector{seen(0, GpuAccess::Load, 100, 1), seen(0, GpuAccess::Store, 104, 2)})
                  .is_idempotent);
  EXPECT_FALSE(find_truth(std::vector{seen(0, GpuAccess::Atomic, 100, 1)}).is_idempotent);
}

}  // namespace
}  // namespace firebreak::idempotency
