// SPDX-License-Identifier: Apache-2.0
/// Managed ranges and sparse external ranges of a process's own: strays into them harm nothing.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "ground/os/real_kernel.h"
#include "program/cuda/address_reservation.h"
#include "program/cuda/copy.h"
#include "program/cuda/device_buffer.h"
#include "program/cuda/mapping.h"
#include "program/cuda/module.h"
#include "program/cuda/physical_allocation.h"
#include "program/cuda/pinned_buffer.h"
#include "program/cuda/stream.h"
#include "shared/abi/uvm_ranges.h"
#include "shared/abi/uvm_tools.h"
#include "softgpu/devices/device_kernel.h"
#include "tests/softgpu/gpu_test.h"

namespace firebreak::test {
namespace {

constexpr std::string_view ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry load(.param .u64 address, .param .u64 out)
{
  .reg .u64 %address, %out;
  .reg .u32 %value;
  ld.param.u64 %address, [address];
  ld.param.u64 %out, [out];
  ld.volatile.global.u32 %value, [%address];
  st.global.u32 [%out], %value;
  ret;
}

.visible .entry store(.param .u64 address, .param .u64 out)
{
  .reg .u64 %address;
  ld.param.u64 %address, [address];
  st.volatile.global.u32 [%address], 7;
  ret;
}

.visible .entry add(.param .u64 address, .param .u64 out)
{
  .reg .u64 %address, %out;
  .reg .u32 %value;
  ld.param.u64 %address, [address];
  ld.param.u64 %out, [out];
  atom.global.add.u32 %value, [%address], 3;
  st.global.u32 [%out], %value;
  ret;
}

.visible .entry reduce(.param .u64 address, .param .u64 out)
{
  .reg .u64 %address;
  ld.param.u64 %address, [address];
  red.global.add.u32 [%address], 5;
  ret;
}

// Every lane at its own granule.
.visible .entry scatter(.param .u64 address, .param .u64 out)
{
  .reg .u64 %address, %offset;
  .reg .u32 %lane;
  ld.param.u64 %address, [address];
  mov.u32 %lane, %tid.x;
  mul.wide.u32 %offset, %lane, 65536;
  add.u64 %address, %address, %offset;
  st.global.u32 [%address], %lane;
  ret;
}
)";

/// Where sanitizers have a program's own data and no program is loaded.
constexpr std::uint64_t place = 0x567000000000;
constexpr std::uint64_t mib = std::uint64_t{1} << 20;
constexpr std::uint64_t all_bytes = 256 * mib;

class UvmRangesOnDriver : public GpuTest {
 protected:
  UvmRangesOnDriver() : kernel_(std::make_unique<os::RealKernel>()) {
    if (choose_driver()) kernel_ = std::make_unique<softgpu::DeviceKernel>(std::move(kernel_));
    const std::string folder = "/proc/self/fd";
    for (const std::string& name : must(kernel_->list_directory(folder))) {
      const auto link = kernel_->read_link(folder + "/" + name);
      if (link && *link == kernel_->uvm_link_target()) descriptors_.push_back(std::atoi(name.c_str()));
    }
  }
  ~UvmRangesOnDriver() override { ::munmap(reinterpret_cast<void*>(place), all_bytes); }

  static bool map_managed(int descriptor, std::uint64_t begin, std::uint64_t length,
                          int fixed = MAP_FIXED_NOREPLACE) {
    void* const wanted = reinterpret_cast<void*>(begin);
    return ::mmap(wanted, length, PROT_READ | PROT_WRITE, MAP_SHARED | fixed, descriptor,
                  static_cast<off_t>(begin)) == wanted;
  }
  void make_managed(std::uint64_t begin, std::uint64_t length) {
    const auto takes = [&](int descriptor) { return map_managed(descriptor, begin, length); };
    ASSERT_TRUE(std::ranges::any_of(descriptors_, takes));
  }
  static void make_hole(std::uint64_t begin, std::uint64_t length) {
    ASSERT_EQ(::munmap(reinterpret_cast<void*>(begin), length), 0);
  }

  /// What the kernel put into its second argument; 0 when nothing.
  std::uint32_t run(const std::string& kernel, CUdeviceptr address, unsigned int threads = 1) {
    std::uint32_t word = 0;
    const auto bytes = std::as_writable_bytes(std::span(&word, 1));
    must(cuda::copy_to_device(driver(), out_.address(), bytes));
    const cuda::LaunchShape shape{.grid = {}, .block = {.x = threads}};
    must(must(module_.function(kernel)).launch(nullptr, shape, address, out_.address()));
    must(context()->synchronize());
    must(cuda::copy_to_host(driver(), bytes, out_.address()));
    return word;
  }

  /// The status of the descriptor that is a VA space; the other one says that it is none.
  template <class Argument>
  std::uint32_t request(unsigned long number, Argument argument) {
    std::optional<std::uint32_t> answer;
    for (const int descriptor : descriptors_) {
      os::Fd fd(descriptor);
      const Status asked = kernel_->ioctl(fd, number, &argument);
      fd.release();
      must(asked);
      if (argument.rm_status != abi::nv_err_illegal_action) answer = argument.rm_status;
    }
    return answer.value();
  }
  std::uint32_t create(std::uint64_t begin, std::uint64_t length) {
    return request(abi::uvm_create_external_range, abi::UvmRange{begin, length, 0, 0});
  }
  std::uint32_t make_sparse(std::uint64_t begin, std::uint64_t length) {
    CUuuid uuid;
    must(driver().check(driver()->cuDeviceGetUuid(&uuid, device().handle()), "cuDeviceGetUuid"));
    abi::UvmMapExternalSparse argument{begin, length, {}, 0, 0};
    std::memcpy(argument.gpu_uuid.data(), uuid.bytes, sizeof(uuid.bytes));
    return request(abi::uvm_map_external_sparse, argument);
  }
  std::uint32_t free(std::uint64_t begin, std::uint64_t length) {
    return request(abi::uvm_free, abi::UvmRange{begin, length, 0, 0});
  }

  std::unique_ptr<os::Kernel> kernel_;
  std::vector<int> descriptors_;
  cuda::Module module_ = must(cuda::Module::load_ptx(driver(), ptx));
  cuda::DeviceBuffer out_ = must(cuda::DeviceBuffer::allocate(driver(), 4096));
};

TEST_F(UvmRangesOnDriver, OneOfTwoDescriptorsHasThem) {
  ASSERT_EQ(descriptors_.size(), 2U);
  const bool first = map_managed(descriptors_[0], place, mib);
  const bool second = map_managed(descriptors_[1], place + mib, mib);
  EXPECT_NE(first, second);
}

TEST_F(UvmRangesOnDriver, StraysGoOnAndTheirDataStay) {
  make_managed(place, all_bytes);
  EXPECT_EQ(run("load", place + 0x5000), 0U);
  run("store", place + mib + 64);
  EXPECT_EQ(run("add", place + mib + 64), 7U);
  run("reduce", place + mib + 64);
  EXPECT_EQ(run("load", place + mib + 64), 15U);
  EXPECT_EQ(run("add", place + 2 * mib), 0U);
  run("reduce", place + 3 * mib);
  EXPECT_EQ(run("load", place + 3 * mib), 5U);
  EXPECT_EQ(run("load", place + all_bytes - 4), 0U);
}

TEST_F(UvmRangesOnDriver, EveryLaneMayStray) {
  make_managed(place, all_bytes);
  run("scatter", place, 32);
  for (std::uint32_t lane = 0; lane < 32; ++lane)
    EXPECT_EQ(run("load", place + lane * std::uint64_t{65536}), lane);
}

TEST_F(UvmRangesOnDriver, WhereAStrayWasIsNoAllocation) {
  make_managed(place, all_bytes);
  run("store", place);
  EXPECT_FALSE(cuda::copy_on_device(driver(), out_.address(), place, 4));
  EXPECT_FALSE(cuda::fill_words(driver(), place, 1, 1));
  EXPECT_FALSE(must(cuda::Stream::create(driver())).write_value(place, 1));
}

TEST_F(UvmRangesOnDriver, TheCpusRightsAreNotTheGpus) {
  make_managed(place, all_bytes);
  ASSERT_EQ(::mprotect(reinterpret_cast<void*>(place), all_bytes, PROT_NONE), 0);
  run("store", place + 4096);
  EXPECT_EQ(run("load", place + 4096), 7U);
}

/// A reservation of the driver's, whose addresses are the CPU's placeholder until the program lays a managed
/// range over them.
class ReservationUnderARange : public UvmRangesOnDriver {
 protected:
  static constexpr std::uint64_t size_bytes = 64 * mib;
  static constexpr std::uint64_t middle = place + 16 * mib;
  static constexpr std::uint64_t part_bytes = 4 * mib;

  void cover(std::uint64_t begin, std::uint64_t length) {
    const auto takes = [&](int descriptor) { return map_managed(descriptor, begin, length, MAP_FIXED); };
    ASSERT_TRUE(std::ranges::any_of(descriptors_, takes));
  }
  static void uncover(std::uint64_t begin, std::uint64_t length) {
    void* const wanted = reinterpret_cast<void*>(begin);
    ASSERT_EQ(
        ::mmap(wanted, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0),
        wanted);
  }

  std::optional<cuda::AddressReservation> reservation_{
      must(cuda::AddressReservation::reserve_at(driver(), place, size_bytes))};
};

TEST_F(ReservationUnderARange, KeepsTheCpuFromItsAddressesAsLongAsItLives) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer keeps these addresses for itself";
#endif
  const auto takes = [](int descriptor) { return map_managed(descriptor, middle, part_bytes); };
  EXPECT_FALSE(std::ranges::any_of(descriptors_, takes));
  reservation_.reset();
  EXPECT_TRUE(std::ranges::any_of(descriptors_, takes));
}

TEST_F(ReservationUnderARange, TakesMappingsWhereTheRangeIsOpened) {
  cover(place, size_bytes);
  run("store", middle + 8);
  const auto memory = must(cuda::PhysicalAllocation::create(device(), part_bytes));
  // The range is in the way of rights, not of a mapping that has none.
  ASSERT_EQ(driver()->cuMemMap(middle, part_bytes, 0, memory.handle(), 0), CUDA_SUCCESS);
  EXPECT_EQ(run("load", middle + 8), 7U);
  const CUmemAccessDesc rights{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  EXPECT_NE(driver()->cuMemSetAccess(middle, part_bytes, &rights, 1), CUDA_SUCCESS);
  uncover(middle, part_bytes);
  ASSERT_EQ(driver()->cuMemSetAccess(middle, part_bytes, &rights, 1), CUDA_SUCCESS);
  must(cuda::fill_words(driver(), middle, 9, part_bytes / 4));
  EXPECT_EQ(run("load", middle + 8), 9U);
  run("store", middle + part_bytes);
  EXPECT_EQ(run("load", middle + part_bytes - 4), 9U);
  ASSERT_EQ(driver()->cuMemUnmap(middle, part_bytes), CUDA_SUCCESS);
  cover(middle, part_bytes);
  EXPECT_EQ(run("load", middle + 8), 0U);  // used after it was freed
  EXPECT_EQ(run("load", middle + part_bytes), 7U);
}

class AllocationInAHole : public UvmRangesOnDriver {
 protected:
  static constexpr std::uint64_t size_bytes = 64 * mib;
  static constexpr std::uint64_t hole = place + 64 * mib;

  AllocationInAHole() {
    make_managed(place, all_bytes);
    run("store", hole + 8);  // what a stray left there is no part of the allocation
    make_hole(hole, size_bytes);
    reservation_.emplace(must(cuda::AddressReservation::reserve_at(driver(), hole, size_bytes)));
    auto memory = must(cuda::PhysicalAllocation::create(device(), size_bytes));
    mapping_.emplace(must(cuda::Mapping::map(device(), hole, memory, cuda::Access::ReadWrite)));
    must(cuda::fill_words(driver(), hole, 9, size_bytes / 4));
  }
  void free_and_cover() {
    mapping_.reset();
    reservation_.reset();
    make_managed(hole, size_bytes);
  }

  std::optional<cuda::AddressReservation> reservation_;
  std::optional<cuda::Mapping> mapping_;
};

TEST_F(AllocationInAHole, IsOneLikeAnyOtherAndGuardedOnBothSides) {
  EXPECT_EQ(run("load", hole + 8), 9U);
  run("store", hole + size_bytes);
  run("store", hole - 4);
  EXPECT_EQ(run("load", hole + size_bytes), 7U);
  EXPECT_EQ(run("load", hole), 9U);
  EXPECT_EQ(run("load", hole + size_bytes - 4), 9U);
}

TEST_F(AllocationInAHole, UseAfterFreeFindsZeroes) {
  free_and_cover();
  EXPECT_EQ(run("load", hole + 8), 0U);
  run("store", hole + 8);
  EXPECT_EQ(run("load", hole + 8), 7U);
}

TEST_F(AllocationInAHole, AddressesOfALiveRangeAreNotToBeHad) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer keeps these addresses for itself";
#endif
  EXPECT_FALSE(cuda::AddressReservation::reserve_at(driver(), place, size_bytes));
  EXPECT_FALSE(cuda::AddressReservation::reserve_at(driver(), hole + size_bytes, size_bytes));
  free_and_cover();
  EXPECT_FALSE(cuda::AddressReservation::reserve_at(driver(), hole, size_bytes));
  make_hole(hole, size_bytes);
  EXPECT_TRUE(cuda::AddressReservation::reserve_at(driver(), hole, size_bytes));
}

TEST_F(AllocationInAHole, MayGoWhileItIsATarget) {
  const auto gate = must(cuda::PinnedBuffer::allocate(driver(), 64));
  const auto other = must(cuda::DeviceBuffer::allocate(driver(), mib));
  const auto stream = must(cuda::Stream::create(driver()));
  must(cuda::fill_words(driver(), other.address(), 3, mib / 4));
  must(context()->synchronize());
  must(stream.wait_value(gate.device_address(), 1));
  must(cuda::copy_on_device(driver(), hole, other.address(), mib, stream.handle()));
  must(cuda::fill_words(driver(), hole + 2 * mib, 4, mib / 4, stream.handle()));
  must(stream.write_value(hole + 4 * mib, 5));
  must(cuda::copy_on_device(driver(), other.address(), hole + 8 * mib, mib, stream.handle()));
  free_and_cover();
  std::atomic_ref(*reinterpret_cast<std::uint32_t*>(gate.data())).store(1);
  must(stream.synchronize());
  EXPECT_EQ(run("load", hole), 3U);
  EXPECT_EQ(run("load", hole + mib - 4), 3U);
  EXPECT_EQ(run("load", hole + 2 * mib), 4U);
  EXPECT_EQ(run("load", hole + 3 * mib - 4), 4U);
  EXPECT_EQ(run("load", hole + 4 * mib), 5U);
  EXPECT_EQ(run("load", other.address() + mib - 4), 0U);
}

TEST_F(UvmRangesOnDriver, SparseReadsAsZeroAndTakesNothing) {
  ASSERT_EQ(create(place, all_bytes), abi::nv_ok);
  ASSERT_EQ(make_sparse(place, all_bytes), abi::nv_ok);
  EXPECT_EQ(run("load", place + mib), 0U);
  run("store", place + mib);
  EXPECT_EQ(run("load", place + mib), 0U);
  EXPECT_EQ(run("add", place + mib), 0U);
  EXPECT_EQ(run("add", place + mib), 0U);
  run("scatter", place, 32);
  EXPECT_EQ(run("load", place + 31 * std::uint64_t{65536}), 0U);
  EXPECT_EQ(free(place, all_bytes), abi::nv_ok);
}

TEST_F(UvmRangesOnDriver, SparseTakesWhatWaitedForItsTarget) {
  const auto gate = must(cuda::PinnedBuffer::allocate(driver(), 64));
  const auto other = must(cuda::DeviceBuffer::allocate(driver(), mib));
  const auto stream = must(cuda::Stream::create(driver()));
  must(cuda::fill_words(driver(), other.address(), 3, mib / 4));
  must(context()->synchronize());
  {
    const auto reservation = must(cuda::AddressReservation::reserve_at(driver(), place, 16 * mib));
    const auto memory = must(cuda::PhysicalAllocation::create(device(), 16 * mib));
    const auto mapping = must(cuda::Mapping::map(device(), place, memory, cuda::Access::ReadWrite));
    must(stream.wait_value(gate.device_address(), 1));
    must(cuda::fill_words(driver(), place + 8 * mib, 4, mib / 4, stream.handle()));
    must(stream.write_value(place + 12 * mib, 5));
    must(cuda::copy_on_device(driver(), place, other.address(), mib, stream.handle()));
    must(cuda::copy_on_device(driver(), other.address(), place, mib, stream.handle()));
  }
  ASSERT_EQ(create(place, 16 * mib), abi::nv_ok);
  ASSERT_EQ(make_sparse(place, 16 * mib), abi::nv_ok);
  std::atomic_ref(*reinterpret_cast<std::uint32_t*>(gate.data())).store(1);
  must(stream.synchronize());
  EXPECT_EQ(run("load", other.address()), 0U);
  EXPECT_EQ(run("load", other.address() + mib - 4), 0U);
  EXPECT_EQ(run("load", place + 8 * mib), 0U);
  EXPECT_EQ(free(place, 16 * mib), abi::nv_ok);
}

TEST_F(UvmRangesOnDriver, SparseAndMappingsKeepEachOtherOut) {
  const std::uint64_t granule = must(cuda::PhysicalAllocation::granularity_bytes(device()));
  const auto memory = must(cuda::PhysicalAllocation::create(device(), granule));
  const auto reservation = must(cuda::AddressReservation::reserve_at(driver(), place, 2 * granule));
  {
    const auto mapping = must(cuda::Mapping::map(device(), place, memory, cuda::Access::ReadWrite));
    EXPECT_EQ(create(place, granule), abi::nv_err_uvm_address_in_use);
    EXPECT_EQ(make_sparse(place, granule), abi::nv_err_invalid_address);
    run("store", place);
    EXPECT_EQ(run("load", place), 7U);
  }
  ASSERT_EQ(create(place, 2 * granule), abi::nv_ok);
  ASSERT_EQ(make_sparse(place, 2 * granule), abi::nv_ok);
  EXPECT_EQ(run("load", place), 0U);
  EXPECT_FALSE(cuda::Mapping::map(device(), place, memory, cuda::Access::ReadWrite));
  ASSERT_EQ(free(place, 2 * granule), abi::nv_ok);
  const auto mapping = must(cuda::Mapping::map(device(), place, memory, cuda::Access::ReadWrite));
  EXPECT_EQ(run("load", place), 7U);
}

TEST_F(UvmRangesOnDriver, SparseRangesHaveRules) {
  EXPECT_EQ(create(0, 65536), abi::nv_err_invalid_address);
  EXPECT_EQ(make_sparse(place, 65536), abi::nv_err_invalid_address);
  make_managed(place, mib);
  EXPECT_EQ(create(place + 65536, 65536), abi::nv_err_uvm_address_in_use);
  ASSERT_EQ(create(place + mib, mib), abi::nv_ok);
  abi::UvmMapExternalSparse foreign{place + mib, 65536, {}, 0, 0};
  EXPECT_EQ(request(abi::uvm_map_external_sparse, foreign), abi::nv_err_invalid_device);
  EXPECT_EQ(free(place + mib, 65536), abi::nv_err_invalid_address);
  EXPECT_EQ(free(place + mib, mib), abi::nv_ok);
}

}  // namespace
}  // namespace firebreak::test
