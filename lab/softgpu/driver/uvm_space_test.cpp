// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/uvm_space.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>

#include "shared/abi/uvm_tools.h"

namespace firebreak::softgpu::driver {
namespace {

constexpr double quick = 1000;

class UvmSpaceTest : public ::testing::Test {
 protected:
  /// Sanitizers have a program's own data elsewhere, and no program is loaded there.
  static constexpr std::uint64_t place = 0x567000000000;
  static constexpr std::uint64_t mib = 1 << 20;

  ~UvmSpaceTest() override { unmap(place, 16 * mib); }
  bool make_managed(std::uint64_t begin, std::uint64_t length) {
    void* const wanted = reinterpret_cast<void*>(begin);
    return ::mmap(wanted, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE,
                  uvm_.descriptor().fd(), static_cast<off_t>(begin)) == wanted;
  }
  static void unmap(std::uint64_t begin, std::uint64_t length) {
    ::munmap(reinterpret_cast<void*>(begin), length);
  }
  FaultAnswer::Kind fault(std::uint64_t address, GpuAccess access = GpuAccess::Store) {
    return uvm_.handle({address, access, true}).kind;
  }
  std::byte& byte_at(std::uint64_t address) {
    const auto found = uvm_.space().find(address).value();
    return found.host[address - found.begin];
  }
  /// Maps as the driver maps something of its own.
  bool map_memory(std::uint64_t begin, std::uint64_t length, PageAccess access = PageAccess::ReadWrite) {
    return uvm_.map({begin, begin + length, memory_.data(), access, nullptr});
  }

  UvmSpace uvm_{UvmDescriptor::create().value(), quick};
  std::array<std::byte, 65536> memory_{};
};

using Kind = FaultAnswer::Kind;

TEST_F(UvmSpaceTest, AFaultOutsideIsFatalAndInsideIsServicedOnce) {
  EXPECT_EQ(fault(place), Kind::Fatal);
  ASSERT_TRUE(make_managed(place, mib));
  EXPECT_EQ(fault(place - 1), Kind::Fatal);
  EXPECT_EQ(fault(place + mib), Kind::Fatal);
  EXPECT_EQ(uvm_.descriptor().posted(), 0U);
  EXPECT_EQ(fault(place + 0x12345, GpuAccess::Atomic), Kind::Serviced);
  EXPECT_EQ(fault(place + 0x12346), Kind::Serviced);  // somebody else's at the same time
  ASSERT_EQ(uvm_.descriptor().posted(), 1U);
  const auto event = uvm_.descriptor().read(0);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->address, place + 0x12345);
  EXPECT_EQ(event->access, GpuAccess::Atomic);
  EXPECT_EQ(event->fatal, 0U);
  EXPECT_GT(event->due_ns, event->when_ns);
}

TEST_F(UvmSpaceTest, MemoryIsAGranuleWithinItsRange) {
  ASSERT_TRUE(make_managed(place + 4096, 2 * 65536));
  ASSERT_EQ(fault(place + 8192), Kind::Serviced);
  const auto first = uvm_.space().find(place + 8192);
  EXPECT_EQ(first->begin, place + 4096);
  EXPECT_EQ(first->end, place + 65536);
  ASSERT_EQ(fault(place + 65536), Kind::Serviced);
  EXPECT_EQ(uvm_.space().find(place + 65536)->end, place + 2 * 65536);
  ASSERT_EQ(fault(place + 2 * 65536), Kind::Serviced);
  EXPECT_EQ(uvm_.space().find(place + 2 * 65536)->end, place + 4096 + 2 * 65536);
}

TEST_F(UvmSpaceTest, ARangeThatGrewIsServicedBesideWhatIsThere) {
  ASSERT_TRUE(make_managed(place, 4096));
  ASSERT_EQ(fault(place), Kind::Serviced);
  byte_at(place + 5) = std::byte{9};
  ASSERT_TRUE(make_managed(place + 4096, mib - 4096));
  ASSERT_EQ(fault(place + 4096), Kind::Serviced);
  EXPECT_EQ(byte_at(place + 5), std::byte{9});
  EXPECT_EQ(uvm_.space().find(place + 4096)->begin, place + 4096);
  EXPECT_EQ(uvm_.descriptor().posted(), 2U);
}

TEST_F(UvmSpaceTest, CpuRightsDoNotMatter) {
  ASSERT_TRUE(make_managed(place, mib));
  ASSERT_EQ(::mprotect(reinterpret_cast<void*>(place), mib, PROT_NONE), 0);
  EXPECT_EQ(fault(place), Kind::Serviced);
}

TEST_F(UvmSpaceTest, WhatTheDriverMapsInAHoleReplacesTheMemory) {
  ASSERT_TRUE(make_managed(place, mib));
  ASSERT_EQ(fault(place), Kind::Serviced);
  ASSERT_EQ(fault(place + 65536), Kind::Serviced);
  byte_at(place + 65536) = std::byte{7};
  EXPECT_FALSE(map_memory(place, 65536));
  unmap(place, 65536);
  ASSERT_TRUE(map_memory(place, 65536, PageAccess::ReadOnly));
  EXPECT_EQ(uvm_.space().find(place)->host, memory_.data());
  EXPECT_FALSE(uvm_.space().find(place)->managed);
  EXPECT_EQ(byte_at(place + 65536), std::byte{7});  // the memory beside the hole did not change
  // Memory that the driver maps is never serviced: a violation of its rights stays one.
  EXPECT_EQ(fault(place, GpuAccess::Store), Kind::Fatal);
  EXPECT_EQ(fault(place, GpuAccess::Load), Kind::Serviced);
  ASSERT_TRUE(uvm_.unmap(place, 65536));
  EXPECT_EQ(fault(place), Kind::Fatal);
  ASSERT_TRUE(make_managed(place, 65536));
  EXPECT_EQ(fault(place), Kind::Serviced);
  EXPECT_EQ(uvm_.descriptor().posted(), 3U);
}

TEST_F(UvmSpaceTest, MemoryOfARangeThatIsGoneGoesWithTheNextFault) {
  ASSERT_TRUE(make_managed(place, mib));
  ASSERT_EQ(fault(place), Kind::Serviced);
  byte_at(place + 100) = std::byte{1};
  byte_at(place + 40000) = std::byte{2};
  unmap(place, 32768);
  EXPECT_EQ(fault(place + 8 * mib), Kind::Fatal);
  EXPECT_FALSE(uvm_.space().find(place + 100));
  EXPECT_EQ(byte_at(place + 40000), std::byte{2});  // the rest of the granule stays
  ASSERT_TRUE(make_managed(place, 32768));
  EXPECT_EQ(fault(place + 100), Kind::Serviced);
  EXPECT_EQ(byte_at(place + 100), std::byte{0});
  EXPECT_EQ(uvm_.descriptor().posted(), 2U);
}

TEST_F(UvmSpaceTest, SparseIsNeitherAFaultNorToBeMappedOver) {
  UvmRangeTable& ranges = uvm_.descriptor().ranges();
  ASSERT_EQ(ranges.create_external(place, mib, {}), abi::nv_ok);
  EXPECT_EQ(fault(place), Kind::Fatal);
  ASSERT_EQ(ranges.map_sparse(place, 65536), abi::nv_ok);
  EXPECT_EQ(fault(place), Kind::Sparse);
  EXPECT_EQ(uvm_.handle({place + 4096, GpuAccess::Load, true}).sparse_end, place + 65536);
  EXPECT_EQ(fault(place + 65536), Kind::Fatal);
  EXPECT_EQ(uvm_.descriptor().posted(), 0U);
  EXPECT_FALSE(map_memory(place, 65536));
  ASSERT_EQ(ranges.free(place, mib), abi::nv_ok);
  EXPECT_TRUE(map_memory(place, 65536));
  EXPECT_NE(ranges.create_external(place, mib, {}), abi::nv_ok);
}

}  // namespace
}  // namespace firebreak::softgpu::driver
