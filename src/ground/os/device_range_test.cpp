// SPDX-License-Identifier: Apache-2.0
// Addresses that a device serves, with a memory file for a device.
#include "ground/os/addresses.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "ground/os/file.h"
#include "ground/os/memory.h"

namespace firebreak::os {
namespace {

constexpr std::size_t size_bytes = std::size_t{16} << 20;

/// Addresses that nobody else has for the time of a test.
class DeviceRange : public ::testing::Test {
 protected:
  void SetUp() override {
    auto device = create_memory_file("device", 4096);
    ASSERT_TRUE(device);
    device_ = std::move(*device);
    auto addresses = Mapping::anonymous(size_bytes);
    ASSERT_TRUE(addresses);
    addresses_ = std::move(*addresses);
    range_.begin = reinterpret_cast<std::uint64_t>(addresses_.data());
    range_.end = range_.begin + size_bytes;
  }
  bool device_is_at(std::uint64_t address) const {
    const auto regions = memory_map(getpid());
    const auto device = identity_of(device_.get());
    EXPECT_TRUE(regions && device);
    return std::any_of(regions->begin(), regions->end(), [&](const MappedRegion& region) {
      return address >= region.begin && address < region.end && region.file == *device &&
             region.offset_bytes == region.begin;
    });
  }

  Fd device_;
  Mapping addresses_;
  AddressRange range_;
};

TEST_F(DeviceRange, IsRefusedWhereSomebodyIs) {
  const auto mapped = map_device_range(device_.get(), range_, Occupant::Nobody);
  ASSERT_FALSE(mapped);
  EXPECT_EQ(mapped.error().code, ErrorCode::Unavailable);
  EXPECT_FALSE(device_is_at(range_.begin));
}

TEST_F(DeviceRange, TakesOverAPlaceholderAndGivesItBack) {
  ASSERT_TRUE(map_device_range(device_.get(), range_, Occupant::Placeholder));
  EXPECT_TRUE(device_is_at(range_.begin));
  const AddressRange hole{range_.begin + 4096, range_.begin + 8192};
  ASSERT_TRUE(hold_range(hole));
  EXPECT_TRUE(device_is_at(range_.begin));
  EXPECT_FALSE(device_is_at(hole.begin));
  EXPECT_TRUE(device_is_at(hole.end));
  const auto again = map_device_range(device_.get(), hole, Occupant::Nobody);
  EXPECT_FALSE(again) << "the placeholder keeps others away";
}

TEST_F(DeviceRange, IsASegmentationFaultToTheCpu) {
  ASSERT_TRUE(map_device_range(device_.get(), range_, Occupant::Placeholder));
  // A sanitizer turns the signal into an end of its own.
  EXPECT_DEATH(*reinterpret_cast<volatile int*>(range_.begin + 64) = 1, "");
  EXPECT_DEATH((void)*reinterpret_cast<volatile int*>(range_.begin), "");
}

TEST(DeviceRangeOf, NoDeviceIsAFailureAndLeavesNothing) {
  const auto mapped = map_device_range(-1, {0x4000'0000'0000, 0x4000'0020'0000}, Occupant::Nobody);
  EXPECT_FALSE(mapped);
}

}  // namespace
}  // namespace firebreak::os
