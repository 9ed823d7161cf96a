// SPDX-License-Identifier: Apache-2.0
/// What is kept of a program's own mappings, and what becomes of it in one instance after the other.
#include "program/virtual/mappings.h"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <future>
#include <set>
#include <string>

namespace firebreak::virtual_driver {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

/// Each instance has handles of its own for memory, which is a number.
struct FakeState {
  struct Place {
    int memory = 0;
    unsigned long long access = 0;
    bool operator==(const Place&) const = default;
  };
  std::map<CUdeviceptr, Place> mapped;
  std::map<MemoryHandle, int> memories;
  std::map<MemoryHandle, int> references;
  std::set<MemoryHandle> imported;
  MemoryHandle last = 0;
  bool is_dead = false;
  bool shares_nothing = false;

  CUresult answer() const { return is_dead ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS; }
  MemoryHandle add(int memory) {
    memories[++last] = memory;
    references[last] = 1;
    return last;
  }
  int handles() const {
    int sum = 0;
    for (const auto& [handle, count] : references) sum += count;
    return sum;
  }
};

template <Slot slot>
struct FakeVmm {
  static inline FakeState state;
  static inline int made = 0;  ///< by this one

  static void add_memory_functions(cuda::Backend& driver) {
    driver.cuMemCreate = [](MemoryHandle* handle, std::size_t, const CUmemAllocationProp* wanted,
                            unsigned long long) {
      if (state.shares_nothing && wanted->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE)
        return CUDA_ERROR_NOT_SUPPORTED;
      *handle = state.add(static_cast<int>(slot) * 1000 + ++made);
      return state.answer();
    };
    driver.cuMemGetAllocationPropertiesFromHandle = [](CUmemAllocationProp* has, MemoryHandle) {
      *has = {};
      has->allocFlags.gpuDirectRDMACapable = 1;
      has->requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
      return state.answer();
    };
    driver.cuMemRelease = [](MemoryHandle handle) {
      --state.references[handle];
      return state.answer();
    };
    driver.cuMemRetainAllocationHandle = [](MemoryHandle* handle, void* address) {
      const int memory = state.mapped.at(reinterpret_cast<CUdeviceptr>(address)).memory;
      for (const auto& [known, other] : state.memories) {
        if (other == memory) *handle = known;
      }
      ++state.references[*handle];
      return state.answer();
    };
    driver.cuMemExportToShareableHandle = [](void* to, MemoryHandle handle, CUmemAllocationHandleType,
                                             unsigned long long) {
      if (state.imported.contains(handle)) return CUDA_ERROR_INVALID_VALUE;  // H100
      const int memory = state.memories.at(handle);
      const int fd = ::memfd_create("fake-vmm", MFD_CLOEXEC);
      if (::pwrite(fd, &memory, sizeof memory, 0) != sizeof memory) return CUDA_ERROR_OPERATING_SYSTEM;
      *static_cast<int*>(to) = fd;
      return state.answer();
    };
    driver.cuMemImportFromShareableHandle = [](MemoryHandle* handle, void* from, CUmemAllocationHandleType) {
      int memory = 0;
      const int fd = static_cast<int>(reinterpret_cast<std::intptr_t>(from));
      if (::pread(fd, &memory, sizeof memory, 0) != sizeof memory) return CUDA_ERROR_INVALID_VALUE;
      *handle = state.add(memory);
      state.imported.insert(*handle);
      return state.answer();
    };
  }

  static std::unique_ptr<Instance> instance() {
    state = {};
    state.last = slot * 100;
    made = 0;
    cuda::Backend driver{};
    add_memory_functions(driver);
    driver.cuMemAddressReserve = [](CUdeviceptr* address, std::size_t, std::size_t, CUdeviceptr,
                                    unsigned long long) {
      *address = 0x7000'0000'0000;
      return state.answer();
    };
    driver.cuMemAddressFree = [](CUdeviceptr, std::size_t) { return state.answer(); };
    driver.cuMemMap = [](CUdeviceptr address, std::size_t, std::size_t, MemoryHandle handle,
                         unsigned long long) {
      state.mapped[address] = {state.memories.at(handle), 0};
      return state.answer();
    };
    driver.cuMemUnmap = [](CUdeviceptr address, std::size_t) {
      state.mapped.erase(address);
      return state.answer();
    };
    driver.cuMemSetAccess = [](CUdeviceptr address, std::size_t, const CUmemAccessDesc* rights, std::size_t) {
      state.mapped[address].access = rights->flags;
      return state.answer();
    };
    driver.cuMemGetAccess = [](unsigned long long* flags, const CUmemLocation*, CUdeviceptr address) {
      *flags = state.mapped[address].access;
      return state.answer();
    };
    return Instance::of(driver, slot);
  }
};

class MappingsTest : public testing::Test {
 protected:
  using First = FakeVmm<1>;
  using Second = FakeVmm<2>;
  using Third = FakeVmm<3>;

  static CUmemAllocationProp plain() {
    CUmemAllocationProp wanted{};
    wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    return wanted;
  }
  MemoryHandle create(const Instance& active, bool* is_for_spare = nullptr) {
    const CUmemAllocationProp wanted = plain();
    bool ignored = true;
    MemoryHandle handle = 0;
    EXPECT_EQ(mappings_.create(active, block_bytes, &wanted, 0,
                               is_for_spare == nullptr ? &ignored : is_for_spare, &handle),
              CUDA_SUCCESS);
    return handle;
  }
  CUdeviceptr reserve(const Instance& active, std::size_t blocks = 16) {
    CUdeviceptr address = 0;
    EXPECT_EQ(mappings_.reserve(active, blocks * block_bytes, 0, 0, 0, &address), CUDA_SUCCESS);
    EXPECT_TRUE(is_in_window(address));
    return address;
  }
  void map(const Instance& active, CUdeviceptr address, MemoryHandle handle) {
    const CUmemAccessDesc rights{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    EXPECT_EQ(mappings_.map(active, address, block_bytes, 0, handle, 0), CUDA_SUCCESS);
    EXPECT_EQ(mappings_.set_access(active, address, block_bytes, &rights, 1), CUDA_SUCCESS);
  }

  std::unique_ptr<Instance> first_ = First::instance();
  std::unique_ptr<Instance> second_ = Second::instance();
  std::unique_ptr<Instance> third_ = Third::instance();
  Receiver receiver_{nullptr};
  WindowMemory memory_{receiver_};
  Mappings mappings_{receiver_, memory_};
};

TEST_F(MappingsTest, AreTheSameInTheNextInstanceAndInTheOneAfterThat) {
  const CUdeviceptr begin = reserve(*first_);
  map(*first_, begin, create(*first_));
  map(*first_, begin + block_bytes, create(*first_));
  const MemoryHandle unmapped = create(*first_);
  EXPECT_EQ(mappings_.bring_to(*second_, *first_), CUDA_SUCCESS);
  EXPECT_EQ(Second::state.mapped, First::state.mapped);
  EXPECT_TRUE(mappings_.handle_in(2, unmapped));
  First::state.is_dead = true;
  EXPECT_EQ(mappings_.bring_to(*third_, *second_), CUDA_SUCCESS);
  EXPECT_EQ(Third::state.mapped, First::state.mapped);
  EXPECT_EQ(Third::state.handles(), 3);
}

TEST_F(MappingsTest, ThatNobodyElseHasYetOutliveWhoMadeThem) {
  create(*first_);
  First::state.is_dead = true;
  EXPECT_EQ(mappings_.bring_to(*second_, *first_), CUDA_SUCCESS);
  EXPECT_THAT(Second::state.memories, SizeIs(1));
}

TEST_F(MappingsTest, BeforeAMoveTheProgramHasTheDriversOwnHandleAndAfterItOurs) {
  const MemoryHandle before = create(*first_);
  EXPECT_TRUE(First::state.memories.contains(before));
  EXPECT_EQ(mappings_.bring_to(*second_, *first_), CUDA_SUCCESS);
  EXPECT_NE(mappings_.handle_in(2, before), before);
  mappings_.flipped();
  const MemoryHandle after = create(*second_);
  const MemoryHandle other = create(*second_);
  EXPECT_FALSE(Second::state.memories.contains(after));
  EXPECT_NE(after, other);
  EXPECT_EQ(mappings_.handle_in(2, before), 201U) << "and the one of before stays";
  EXPECT_EQ(mappings_.handle_in(2, after), 202U);
}

TEST_F(MappingsTest, ARefusedKindIsMadeAsItWasWantedForOneInstanceAlone) {
  First::state.shares_nothing = true;
  bool is_for_spare = true;
  const MemoryHandle made = create(*first_, &is_for_spare);
  EXPECT_FALSE(is_for_spare);
  EXPECT_EQ(mappings_.bring_to(*second_, *first_), CUDA_SUCCESS);
  EXPECT_FALSE(mappings_.handle_in(2, made));
}

TEST_F(MappingsTest, WhatEndsEndsInBothInstances) {
  const CUdeviceptr begin = reserve(*first_);
  const MemoryHandle handle = create(*first_);
  map(*first_, begin, handle);
  EXPECT_EQ(mappings_.bring_to(*second_, *first_), CUDA_SUCCESS);
  receiver_ = second_.get();
  EXPECT_EQ(mappings_.release(*first_, handle), CUDA_SUCCESS);
  EXPECT_EQ(First::state.handles(), 1) << "it is mapped";
  EXPECT_EQ(mappings_.unmap(*first_, begin, block_bytes), CUDA_SUCCESS);
  EXPECT_THAT(Second::state.mapped, IsEmpty());
  EXPECT_EQ(First::state.handles(), 0);
  EXPECT_EQ(Second::state.handles(), 0);
}

// It ends after the program has left it, and before anybody has emptied it.
TEST_F(MappingsTest, WhatEndsMeanwhileIsTakenFromTheInstanceThatWasLeft) {
  const CUdeviceptr begin = reserve(*first_);
  const MemoryHandle ended = create(*first_);
  map(*first_, begin, ended);
  map(*first_, begin + block_bytes, create(*first_));
  EXPECT_EQ(mappings_.bring_to(*second_, *first_), CUDA_SUCCESS);
  mappings_.flipped();
  EXPECT_EQ(mappings_.unmap(*second_, begin, block_bytes), CUDA_SUCCESS);
  EXPECT_EQ(mappings_.release(*second_, ended), CUDA_SUCCESS);
  EXPECT_THAT(First::state.mapped, SizeIs(2));
  mappings_.take_from(*first_);
  EXPECT_THAT(First::state.mapped, IsEmpty());
  EXPECT_EQ(First::state.handles(), 0);
  EXPECT_THAT(Second::state.mapped, SizeIs(1));
  EXPECT_EQ(Second::state.handles(), 1);
}

TEST_F(MappingsTest, NobodyAsksADeadInstanceForWhatItHas) {
  const CUdeviceptr begin = reserve(*first_);
  map(*first_, begin, create(*first_));
  EXPECT_EQ(mappings_.bring_to(*second_, *first_), CUDA_SUCCESS);
  mappings_.flipped();
  mappings_.forget(1);
  mappings_.take_from(*first_);
  EXPECT_THAT(First::state.mapped, SizeIs(1)) << "as it was";
}

TEST_F(MappingsTest, RightsFollow) {
  const CUdeviceptr begin = reserve(*first_);
  map(*first_, begin, create(*first_));
  EXPECT_EQ(mappings_.bring_to(*second_, *first_), CUDA_SUCCESS);
  const CUmemAccessDesc less{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READ};
  EXPECT_EQ(mappings_.set_access(*first_, begin, block_bytes, &less, 1), CUDA_SUCCESS);
  EXPECT_EQ(Second::state.mapped[begin].access, 3U);
  EXPECT_EQ(mappings_.bring_to(*second_, *first_), CUDA_SUCCESS);
  EXPECT_EQ(Second::state.mapped[begin].access, 1U);
}

// An array may lie in several: whoever has a pointer to one of them reaches the next.
TEST_F(MappingsTest, ThoseThatTouchAreOnePlace) {
  const CUdeviceptr begin = reserve(*first_);
  map(*first_, begin, create(*first_));
  map(*first_, begin + block_bytes, create(*first_));
  map(*first_, begin + 3 * block_bytes, create(*first_));
  const auto found = mappings_.all_own();
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].begin, begin);
  EXPECT_EQ(found[0].size_bytes, 2 * block_bytes);
  EXPECT_EQ(found[1].begin, begin + 3 * block_bytes);
  EXPECT_EQ(found[1].size_bytes, block_bytes);
}

TEST_F(MappingsTest, WhatTouchesMemoryThatIsMappedTwiceIsNotTheProgramsAlone) {
  const CUdeviceptr begin = reserve(*first_);
  const MemoryHandle twice = create(*first_);
  map(*first_, begin, create(*first_));
  map(*first_, begin + block_bytes, twice);
  map(*first_, begin + 4 * block_bytes, twice);
  map(*first_, begin + 6 * block_bytes, create(*first_));
  const auto found = mappings_.all_own();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].begin, begin + 6 * block_bytes);
}

TEST_F(MappingsTest, ExportedMemoryIsExportedByAnInstanceThatHasImportedIt) {
  CUmemAllocationProp wanted = plain();
  wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  bool is_for_spare = true;
  MemoryHandle handle = 0;
  EXPECT_EQ(mappings_.create(*first_, block_bytes, &wanted, 0, &is_for_spare, &handle), CUDA_SUCCESS);
  EXPECT_EQ(mappings_.bring_to(*second_, *first_), CUDA_SUCCESS);
  int descriptor = -1;
  EXPECT_EQ(mappings_.export_to(*second_, &descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
            CUDA_SUCCESS);
  int memory = 0;
  EXPECT_EQ(::pread(descriptor, &memory, sizeof memory, 0), static_cast<ssize_t>(sizeof memory));
  EXPECT_EQ(memory, 1001);
  ::close(descriptor);
  EXPECT_EQ(mappings_.export_to(*second_, &descriptor, create(*second_),
                                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
            CUDA_ERROR_INVALID_VALUE)
      << "the program did not want it so";
}

TEST_F(MappingsTest, PropertiesAreTheDriversButForWhatWeHaveAdded) {
  const MemoryHandle handle = create(*first_);
  CUmemAllocationProp has{};
  EXPECT_EQ(mappings_.properties(handle, &has), CUDA_SUCCESS);
  EXPECT_EQ(has.allocFlags.gpuDirectRDMACapable, 1);
  EXPECT_EQ(has.requestedHandleTypes, CU_MEM_HANDLE_TYPE_NONE);
}

TEST_F(MappingsTest, OnlyWhatTheProgramHasReservedIsReserved) {
  const CUdeviceptr begin = reserve(*first_, 2);
  const CUdeviceptr next = reserve(*first_, 2);
  ASSERT_EQ(next, begin + 2 * block_bytes);
  const MemoryHandle handle = create(*first_);
  EXPECT_EQ(mappings_.map(*first_, next + 2 * block_bytes, block_bytes, 0, handle, 0),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(mappings_.map(*first_, next + block_bytes, 2 * block_bytes, 0, handle, 0),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(mappings_.unmap(*first_, begin, 5 * block_bytes), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(mappings_.unmap(*first_, begin - 1, block_bytes), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(mappings_.map(*first_, begin + block_bytes, 2 * block_bytes, 0, handle, 0), CUDA_SUCCESS)
      << "two that touch each other (H200)";
  EXPECT_EQ(mappings_.free(*first_, begin, 2 * block_bytes), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(mappings_.free(*first_, next, 2 * block_bytes), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(mappings_.unmap(*first_, begin + block_bytes, 2 * block_bytes), CUDA_SUCCESS);
  EXPECT_EQ(mappings_.free(*first_, next, block_bytes), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(mappings_.free(*first_, next, 2 * block_bytes), CUDA_SUCCESS);
  EXPECT_EQ(mappings_.free(*first_, next, 2 * block_bytes), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(MappingsTest, WithoutRoomInTheWindowTheDriversOwnAddressesAreUsed) {
  CUdeviceptr address = 0;
  EXPECT_EQ(mappings_.reserve(*first_, window_bytes + block_bytes, 0, 0, 0, &address), CUDA_SUCCESS);
  EXPECT_EQ(address, 0x7000'0000'0000U);
  const MemoryHandle handle = create(*first_);
  map(*first_, address, handle);
  EXPECT_TRUE(mappings_.find_place(address));
  EXPECT_EQ(mappings_.unmap(*first_, address, block_bytes), CUDA_SUCCESS);
  EXPECT_EQ(mappings_.free(*first_, address, window_bytes + block_bytes), CUDA_SUCCESS);
}

TEST_F(MappingsTest, SegmentsOfLargeGpusFitSeveralTimes) {
  constexpr std::size_t segment_blocks =
      (std::size_t{160} << 30) / block_bytes;  // of an H200: 141 GiB * 1.125
  for (int i = 0; i < 20; ++i) reserve(*first_, segment_blocks);
}

TEST_F(MappingsTest, TheProgramWaitsForNobodyWhileTheyAreBrought) {
  const CUdeviceptr begin = reserve(*first_, 400);
  for (std::uint64_t i = 0; i < 200; ++i) map(*first_, begin + i * block_bytes, create(*first_));
  std::vector<MemoryHandle> more;
  for (int i = 0; i < 50; ++i) more.push_back(create(*first_));
  receiver_ = second_.get();
  const auto waiter =
      std::async(std::launch::async, [&] { EXPECT_EQ(mappings_.bring_to(*second_, *first_), CUDA_SUCCESS); });
  for (std::uint64_t i = 200; i < 250; ++i) {
    map(*first_, begin + i * block_bytes, more[i - 200]);
    EXPECT_EQ(mappings_.unmap(*first_, begin + (i - 100) * block_bytes, block_bytes), CUDA_SUCCESS);
  }
  waiter.wait();
  EXPECT_EQ(mappings_.bring_to(*second_, *first_), CUDA_SUCCESS);
  EXPECT_EQ(Second::state.mapped, First::state.mapped);
}

// ---- What is not for a spare ----

TEST(WhyNotForSpare, IsSaidOfMemory) {
  const auto why = [](auto change) {
    CUmemAllocationProp wanted{};
    wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    change(wanted);
    const char* const reason = why_not_for_spare(wanted);
    return std::string(reason == nullptr ? "" : reason);
  };
  using Wanted = CUmemAllocationProp;
  EXPECT_EQ(why([](Wanted&) {}), "");
  EXPECT_EQ(why([](Wanted& wanted) { wanted.allocFlags.gpuDirectRDMACapable = 1; }), "");
  EXPECT_EQ(
      why([](Wanted& wanted) { wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR; }),
      "");
  EXPECT_EQ(why([](Wanted& wanted) { wanted.location.id = 1; }), "it uses several devices");
  for (const auto type :
       {CU_MEM_LOCATION_TYPE_HOST, CU_MEM_LOCATION_TYPE_HOST_NUMA, CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT})
    EXPECT_EQ(why([&](Wanted& wanted) {
                wanted.location = {type, 0};
              }),
              "it maps memory of the host into the GPU's addresses");
  EXPECT_EQ(why([](Wanted& wanted) { wanted.type = CU_MEM_ALLOCATION_TYPE_MANAGED; }),
            "it creates memory of a kind that is not followed");
  EXPECT_EQ(why([](Wanted& wanted) { wanted.allocFlags.compressionType = 1; }),
            "it creates compressible memory");
  EXPECT_EQ(why([](Wanted& wanted) { wanted.allocFlags.usage = 1; }),
            "it creates memory for a special use (allocFlags.usage)");
}

TEST(WhyNotForSpare, IsSaidOfRights) {
  const CUmemAccessDesc here{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  const CUmemAccessDesc elsewhere{{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  const CUmemAccessDesc host{{CU_MEM_LOCATION_TYPE_HOST, 0}, CU_MEM_ACCESS_FLAGS_PROT_READ};
  EXPECT_EQ(why_not_for_spare(std::array{here, here}), nullptr);
  EXPECT_STREQ(why_not_for_spare(std::array{here, elsewhere}), "it uses several devices");
  EXPECT_STREQ(why_not_for_spare(std::array{host}), "it gives the host access to memory that it maps");
}

}  // namespace
}  // namespace firebreak::virtual_driver
