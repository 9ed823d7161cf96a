// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <optional>

#include "ground/os/fd.h"
#include "program/cuda/address_reservation.h"
#include "program/cuda/copy.h"
#include "program/cuda/mapping.h"
#include "program/cuda/physical_allocation.h"
#include "tests/softgpu/gpu_test.h"

namespace firebreak::test {
namespace {

using cuda::Access;
using cuda::AddressReservation;
using cuda::Mapping;
using cuda::PhysicalAllocation;

class VirtualMemoryOnDriver : public GpuTest {
 protected:
  std::uint32_t word_at(CUdeviceptr address) const {
    std::uint32_t word = 0;
    must(cuda::copy_to_host(driver(), std::as_writable_bytes(std::span(&word, 1)), address));
    return word;
  }
  void write(CUdeviceptr address, std::uint32_t word) const {
    must(cuda::fill_words(driver(), address, word, 1));
    must(context()->synchronize());
  }
  AddressReservation reserve() const { return must(AddressReservation::reserve(driver(), granule_)); }
  PhysicalAllocation create() const { return must(PhysicalAllocation::create(device(), granule_)); }
  Mapping map(CUdeviceptr address, const PhysicalAllocation& memory,
              Access access = Access::ReadWrite) const {
    return must(Mapping::map(device(), address, memory, access));
  }

  std::size_t granule_ = must(PhysicalAllocation::granularity_bytes(device()));
};

TEST_F(VirtualMemoryOnDriver, GranularityIsAPowerOfTwo) {
  EXPECT_GT(granule_, 0U);
  EXPECT_EQ(granule_ & (granule_ - 1), 0U);
}

TEST_F(VirtualMemoryOnDriver, ContentBelongsToTheMemoryAndNotToTheAddress) {
  const auto reservation = must(AddressReservation::reserve(driver(), 2 * granule_));
  const auto memory = create();
  auto mapping = std::optional(map(reservation.address(), memory));
  write(mapping->address() + 4, 77);
  mapping.reset();
  mapping.emplace(map(reservation.address() + granule_, memory));
  EXPECT_EQ(word_at(reservation.address() + granule_ + 4), 77U);
}

TEST_F(VirtualMemoryOnDriver, OneMemoryAtTwoAddresses) {
  const auto reservation = must(AddressReservation::reserve(driver(), 2 * granule_));
  const auto memory = create();
  const auto low = map(reservation.address(), memory);
  const auto high = map(reservation.address() + granule_, memory, Access::ReadOnly);
  write(low.address(), 5);
  EXPECT_EQ(word_at(high.address()), 5U);
}

TEST_F(VirtualMemoryOnDriver, MappingKeepsTheMemory) {
  const auto reservation = reserve();
  auto memory = std::optional(create());
  const auto mapping = map(reservation.address(), *memory);
  memory.reset();
  write(mapping.address(), 6);
  EXPECT_EQ(word_at(mapping.address()), 6U);
}

TEST_F(VirtualMemoryOnDriver, RightsCanBeGivenLater) {
  const auto reservation = reserve();
  const auto memory = create();
  const auto mapping = map(reservation.address(), memory, Access::ReadOnly);
  must(mapping.set_access(device(), Access::ReadWrite));
  write(mapping.address(), 8);
  EXPECT_EQ(word_at(mapping.address()), 8U);
}

// What an H200 does where NVIDIA's manual leaves it open (driver 580.159.04).
TEST_F(VirtualMemoryOnDriver, MemoryIsMappedAsAWhole) {
  const auto reservation = must(AddressReservation::reserve(driver(), 4 * granule_));
  const auto memory = must(PhysicalAllocation::create(device(), 2 * granule_));
  const auto map_part = [&](std::size_t size_bytes, std::size_t offset_bytes) {
    return driver()->cuMemMap(reservation.address(), size_bytes, offset_bytes, memory.handle(), 0);
  };
  EXPECT_EQ(map_part(granule_, 0), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(map_part(granule_, granule_), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(map_part(3 * granule_, 0), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_F(VirtualMemoryOnDriver, AReleasedHandleIsGoodAsLongAsItsMemoryIsMapped) {
  const auto reservation = must(AddressReservation::reserve(driver(), 2 * granule_));
  const CUdeviceptr begin = reservation.address();
  CUmemAllocationProp wanted{};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.location = {CU_MEM_LOCATION_TYPE_DEVICE, device().handle()};
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_EQ(driver()->cuMemCreate(&handle, granule_, &wanted, 0), CUDA_SUCCESS);
  ASSERT_EQ(driver()->cuMemMap(begin, granule_, 0, handle, 0), CUDA_SUCCESS);
  EXPECT_EQ(driver()->cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(driver()->cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(driver()->cuMemMap(begin + granule_, granule_, 0, handle, 0), CUDA_SUCCESS);
  EXPECT_EQ(driver()->cuMemUnmap(begin, 2 * granule_), CUDA_SUCCESS);
  EXPECT_EQ(driver()->cuMemMap(begin, granule_, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(VirtualMemoryOnDriver, AFixedAddressIsExact) {
  CUdeviceptr address = 0;
  {
    const auto reservation = reserve();
    address = reservation.address();
  }
  const auto again = must(AddressReservation::reserve_at(driver(), address, granule_));
  EXPECT_EQ(again.address(), address);
}

TEST_F(VirtualMemoryOnDriver, AFixedAddressInUseIsAnErrorAndNotElsewhere) {
  const auto reservation = reserve();
  const auto taken = AddressReservation::reserve_at(driver(), reservation.address(), granule_);
  ASSERT_FALSE(taken);
}

TEST_F(VirtualMemoryOnDriver, DescriptorGivesTheSameMemory) {
  const auto reservation = must(AddressReservation::reserve(driver(), 2 * granule_));
  const auto memory = create();
  const auto mapping = map(reservation.address(), memory);
  const os::Fd descriptor(must(memory.export_descriptor()));
  const auto imported = must(PhysicalAllocation::import_descriptor(driver(), descriptor.get(), granule_));
  const auto second = map(reservation.address() + granule_, imported);
  write(mapping.address(), 9);
  EXPECT_EQ(word_at(second.address()), 9U);
}

TEST_F(VirtualMemoryOnDriver, DescriptorAloneKeepsTheContent) {
  const auto reservation = reserve();
  os::Fd descriptor;
  {
    const auto memory = create();
    const auto mapping = map(reservation.address(), memory);
    write(mapping.address(), 10);
    descriptor = os::Fd(must(memory.export_descriptor()));
  }
  const auto imported = must(PhysicalAllocation::import_descriptor(driver(), descriptor.get(), granule_));
  const auto mapping = map(reservation.address(), imported);
  EXPECT_EQ(word_at(mapping.address()), 10U);
}

TEST_F(VirtualMemoryOnDriver, ImportOfSomethingElseFails) {
  EXPECT_FALSE(PhysicalAllocation::import_descriptor(driver(), -1, granule_));
}

}  // namespace
}  // namespace firebreak::test
