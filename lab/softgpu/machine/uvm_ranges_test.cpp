// SPDX-License-Identifier: Apache-2.0
#include "softgpu/machine/uvm_ranges.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared/abi/uvm_ranges.h"
#include "shared/abi/uvm_tools.h"
#include "softgpu/machine/uvm_ring.h"

namespace firebreak::softgpu {
namespace {

constexpr std::uint64_t base = 0x700000000000;
constexpr std::uint64_t size_bytes = std::uint64_t{1} << 30;

class UvmRanges : public ::testing::Test {
 protected:
  UvmRanges() { table_.initialise(); }
  std::uint32_t make_sparse(std::uint64_t begin, std::uint64_t length) {
    const std::uint32_t status = table_.create_external(begin, length, {});
    return status == abi::nv_ok ? table_.map_sparse(begin, length) : status;
  }
  UvmRangeTable table_{};
};

TEST_F(UvmRanges, SparseFromMappingToFree) {
  EXPECT_FALSE(table_.find_sparse(base));
  ASSERT_EQ(table_.create_external(base, size_bytes, {}), abi::nv_ok);
  EXPECT_FALSE(table_.find_sparse(base));
  ASSERT_EQ(table_.map_sparse(base, 65536), abi::nv_ok);
  EXPECT_EQ(table_.find_sparse(base + 65535), (AddressSpan{base, base + 65536}));
  EXPECT_FALSE(table_.find_sparse(base + 65536));
  ASSERT_EQ(table_.map_sparse(base, size_bytes), abi::nv_ok);
  EXPECT_TRUE(table_.find_sparse(base + size_bytes - 1));
  ASSERT_EQ(table_.free(base, size_bytes), abi::nv_ok);
  EXPECT_FALSE(table_.find_sparse(base));
  EXPECT_EQ(make_sparse(base, size_bytes), abi::nv_ok);
}

TEST_F(UvmRanges, AddressesOutOfShapeAreRefused) {
  EXPECT_EQ(table_.create_external(0, 65536, {}), abi::nv_err_invalid_address);
  EXPECT_EQ(table_.create_external(base + 1, 65536, {}), abi::nv_err_invalid_address);
  EXPECT_EQ(table_.create_external(base, 0, {}), abi::nv_err_invalid_address);
  EXPECT_EQ(table_.create_external(~std::uint64_t{4095}, 8192, {}), abi::nv_err_invalid_address);
  ASSERT_EQ(table_.create_external(4096, 0x20000 - 4096, {}), abi::nv_ok);
  EXPECT_EQ(table_.map_sparse(4096, 65536), abi::nv_err_invalid_address);  // 64 KiB, not 4
  EXPECT_EQ(table_.map_sparse(65536, 65536), abi::nv_ok);
  EXPECT_EQ(table_.map_sparse(65536, 131072), abi::nv_err_invalid_address);  // reaches beyond its range
  EXPECT_EQ(table_.free(4096, 65536), abi::nv_err_invalid_address);          // a part of the range
}

TEST_F(UvmRanges, NothingLiesOverAnythingElse) {
  ASSERT_EQ(make_sparse(base, size_bytes), abi::nv_ok);
  EXPECT_EQ(make_sparse(base + size_bytes - 65536, size_bytes), abi::nv_err_uvm_address_in_use);
  EXPECT_FALSE(table_.take({base + 4096, base + 8192}));
  ASSERT_TRUE(table_.take({base + size_bytes, base + 2 * size_bytes}));
  EXPECT_EQ(make_sparse(base + 2 * size_bytes - 65536, 65536), abi::nv_err_uvm_address_in_use);
  table_.give({base + size_bytes, base + 2 * size_bytes});
  EXPECT_EQ(make_sparse(base + 2 * size_bytes - 65536, 65536), abi::nv_ok);
  const AddressSpan managed{4 * base / 8, 5 * base / 8};
  EXPECT_EQ(table_.create_external(managed.end - 4096, 4096, std::span(&managed, 1)),
            abi::nv_err_uvm_address_in_use);
  EXPECT_EQ(table_.create_external(managed.end, 4096, std::span(&managed, 1)), abi::nv_ok);
}

TEST_F(UvmRanges, AFullTableSaysSo) {
  std::uint64_t next = base;
  std::uint32_t status = abi::nv_ok;
  for (; status == abi::nv_ok && next < base + 2000 * 65536; next += 65536) status = make_sparse(next, 65536);
  EXPECT_EQ(status, abi::nv_err_no_memory);
  EXPECT_EQ(table_.free(base, 65536), abi::nv_ok);
  EXPECT_EQ(make_sparse(base, 65536), abi::nv_ok);
}

TEST(RobustMutex, IsFreeAgainWhenItsHolderDied) {
  auto memory = os::Mapping::anonymous(os::page_size());
  ASSERT_TRUE(memory);
  auto* const mutex = memory->as<RobustMutex>();
  mutex->initialise();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    mutex->lock();
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  mutex->lock();
  mutex->unlock();
  mutex->lock();
  mutex->unlock();
}

class ManagedRanges : public ::testing::Test {
 protected:
  /// Sanitizers have a program's own data elsewhere, and no program is loaded there.
  static constexpr std::uint64_t place = 0x567000000000;
  static bool map(int fd, std::uint64_t begin, std::uint64_t length, std::uint64_t offset) {
    void* const wanted = reinterpret_cast<void*>(begin);
    return ::mmap(wanted, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, fd,
                  static_cast<off_t>(offset)) == wanted;
  }
  static void unmap(std::uint64_t begin, std::uint64_t length) {
    ::munmap(reinterpret_cast<void*>(begin), length);
  }
};

TEST_F(ManagedRanges, AreTheMappingsWhoseOffsetIsTheirAddress) {
  const auto memory = os::create_memory_file(UvmDescriptor::memfd_name, sizeof(UvmPage));
  ASSERT_TRUE(memory);
  const auto descriptor = UvmDescriptor::create();
  ASSERT_TRUE(descriptor);
  EXPECT_TRUE(descriptor->managed_ranges().empty());
  ASSERT_TRUE(map(descriptor->fd(), place, 1 << 20, place));
  ASSERT_TRUE(map(descriptor->fd(), place + (2 << 20), 1 << 20, 0));               // mapped at another offset
  ASSERT_TRUE(map(memory->get(), place + (4 << 20), 1 << 20, place + (4 << 20)));  // mapped from another file
  EXPECT_EQ(descriptor->managed_ranges(), (std::vector<AddressSpan>{{place, place + (1 << 20)}}));
  // The rights of a part may differ, which makes three mappings of one range; a hole makes two ranges.
  ASSERT_EQ(::mprotect(reinterpret_cast<void*>(place + 65536), 65536, PROT_NONE), 0);
  EXPECT_EQ(descriptor->managed_ranges().size(), 1U);
  unmap(place + 65536, 65536);
  EXPECT_EQ(descriptor->managed_ranges(),
            (std::vector<AddressSpan>{{place, place + 65536}, {place + 131072, place + (1 << 20)}}));
  unmap(place, 8 << 20);
  EXPECT_TRUE(descriptor->managed_ranges().empty());
}

TEST_F(ManagedRanges, TheMemoryManagersDescriptorCanHaveNone) {
  const auto manager = create_memory_manager_descriptor();
  ASSERT_TRUE(manager);
  EXPECT_FALSE(map(manager->get(), place, 1 << 20, place));
  const auto descriptor = UvmDescriptor::from(manager->get());
  ASSERT_FALSE(descriptor);
  EXPECT_EQ(descriptor.error().code, ErrorCode::PermissionDenied);
}

}  // namespace
}  // namespace firebreak::softgpu
