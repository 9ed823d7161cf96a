// SPDX-License-Identifier: Apache-2.0
// Tests of which addresses are made sparse, and how a scripted UVM is asked for them.
#include "agent/faults/strays/sparse_cover.h"

#include <gmock/gmock.h>

#include "ground/os/descriptors.h"
#include "ground/os/memory.h"
#include "shared/abi/uvm_ranges.h"
#include "shared/abi/uvm_tools.h"
#include "tests/doubles/watch/detector_test_support.h"

namespace firebreak::strays {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using Range = os::AddressRange;

constexpr pid_t tenant = 4711;

SparseOptions quick() {
  SparseOptions options;
  options.pause = options.first_retry = Nanoseconds(1000);
  return options;
}

TEST(SparsePlan, TakesAllLowAddressesButTheFirst64Kib) {
  const auto pieces = plan_sparse({{8 * gib, 9 * gib, 0, {}}}, {});
  ASSERT_THAT(pieces, SizeIs(16));
  EXPECT_EQ(pieces.front(), (Range{64 * kib, 256 * mib}));
  EXPECT_EQ(pieces.back(), (Range{4 * gib - 256 * mib, 4 * gib}));
}

TEST(SparsePlan, LeavesWhatTheProgramHasAndRoomForMore) {
  SparseOptions options;
  options.room_to_grow_bytes = 512 * mib;
  const auto pieces = plan_sparse({{4 * mib, 5 * mib, 0, {}}, {8 * mib, 9 * mib + 4096, 0, {}}}, options);
  EXPECT_EQ(pieces.front(), (Range{64 * kib, 4 * mib - 64 * kib}));
  EXPECT_EQ(pieces[1], (Range{521 * mib + 64 * kib, 768 * mib}));
}

class SparseCoverTest : public watch::DetectorTest {
 protected:
  struct Asked {
    unsigned long request;
    Range range;
  };
  SparseCoverTest() {
    kernel_.add_process(tenant);
    kernel_.set_file("/proc/4711/maps", "555500000000-555500001000 r-xp 00000000 08:02 1 /usr/bin/program\n");
    kernel_.set_file("/proc/driver/nvidia/gpus/0000:01:00.0/information",
                     "Model: \t X\nGPU UUID: \t GPU-00010203-0405-0607-0809-0a0b0c0d0e0f\n");
    os::FakeDevice device;
    device.ioctl = [this](const os::Fd&, unsigned long request, void* argument) {
      return answer(request, argument);
    };
    kernel_.set_device("/dev/nvidia-uvm", device);
    kernel_.give_descriptor(tenant, 7, "/dev/nvidia-uvm", os::create_memory_file("uvm", 4096).value());
  }

  Status answer(unsigned long request, void* argument) {
    if (request == abi::uvm_map_external_sparse) {
      auto& map = *static_cast<abi::UvmMapExternalSparse*>(argument);
      uuid_ = map.gpu_uuid;
      map.rm_status = gpus_missing_-- > 0 ? abi::nv_err_invalid_device : abi::nv_ok;
      if (map.rm_status == abi::nv_ok) sparse_.push_back({map.base, map.base + map.length});
      return {};
    }
    auto& range = *static_cast<abi::UvmRange*>(argument);
    if (range.length == 0 && has_no_space_) {
      ++refusals_;
      range.rm_status = abi::nv_err_illegal_action;
      return {};
    }
    const bool in_use = request == abi::uvm_create_external_range && range.base == in_use_;
    range.rm_status = in_use ? abi::nv_err_uvm_address_in_use : abi::nv_ok;
    if (range.length != 0) (request == abi::uvm_free ? freed_ : created_) += 1;
    return {};
  }

  void cover(const SparseOptions& options = quick()) {
    SparseCover cover(*loop_, kernel_, options,
                      [this](pid_t, const SparseReport& report) { reports_.push_back(report); });
    cover.cover(tenant);
    EXPECT_TRUE(run_until([&] { return !reports_.empty(); }));
  }

  bool has_no_space_ = false;  ///< none of its descriptors has
  std::size_t refusals_ = 0;
  int gpus_missing_ = 0;
  std::uint64_t in_use_ = ~std::uint64_t{0};
  os::Kernel::GpuUuid uuid_{};
  std::vector<Range> sparse_;
  int created_ = 0;
  int freed_ = 0;
  std::vector<SparseReport> reports_;
};

TEST_F(SparseCoverTest, CoversPieceByPiece) {
  cover();
  EXPECT_THAT(sparse_, SizeIs(16));
  EXPECT_EQ(reports_[0].covered_bytes, 4 * gib - 64 * kib);
  EXPECT_EQ(describe(reports_[0]), "4095 MiB of unused low addresses swallow strays");
  EXPECT_THAT(uuid_, testing::Contains(0x0e));
  EXPECT_EQ(freed_, 0);
}

TEST_F(SparseCoverTest, LeavesWhatUvmRefuses) {
  in_use_ = 512 * mib;
  cover();
  EXPECT_THAT(sparse_, SizeIs(15));
  EXPECT_EQ(reports_[0].refused_bytes, 256 * mib);
  EXPECT_THAT(describe(reports_[0]), HasSubstr("256 MiB do not: UVM has something there"));
}

TEST_F(SparseCoverTest, WaitsForTheProcesssGpuAndLeavesNothingHalfMade) {
  gpus_missing_ = 3;
  cover();
  EXPECT_THAT(sparse_, SizeIs(16));
  EXPECT_EQ(freed_, 3);
  EXPECT_EQ(created_, 19);
}

TEST_F(SparseCoverTest, GivesUpOnAProcessThatUsesNoGpu) {
  gpus_missing_ = 1000;
  SparseOptions options = quick();
  options.tries_max = 2;
  cover(options);
  EXPECT_THAT(sparse_, IsEmpty());
  EXPECT_EQ(created_, freed_);
  EXPECT_THAT(describe(reports_[0]), HasSubstr("the process uses no GPU"));
}

TEST_F(SparseCoverTest, LeavesAGuardedProcessToItsGuard) {
  kernel_.set_file("/proc/4711/maps", "7f00-8f00 r-xp 00000000 08:02 1 /x/lib/libfirebreak-guard.so\n");
  SparseCover cover(*loop_, kernel_, quick(), [](pid_t, const SparseReport&) { FAIL(); });
  cover.cover(tenant);
  settle();
  EXPECT_EQ(created_, 0);
}

TEST_F(SparseCoverTest, OfOneWithVeryManyDescriptorsTheFirstAreAsked) {
  has_no_space_ = true;
  const int first = 100;
  for (int i = 0; i < 2 * static_cast<int>(os::most_closer_looks); ++i)
    kernel_.give_descriptor(tenant, first + i, "/dev/nvidia-uvm",
                            os::create_memory_file("uvm", 4096).value());
  cover();
  EXPECT_EQ(refusals_, os::most_closer_looks);
  EXPECT_THAT(sparse_, IsEmpty());
  EXPECT_THAT(describe(reports_[0]), HasSubstr("the process has no VA space"));
}

TEST_F(SparseCoverTest, WhoIsForgottenIsAskedNothingMore) {
  SparseCover cover(*loop_, kernel_, quick(), [](pid_t, const SparseReport&) { FAIL(); });
  cover.cover(tenant);
  EXPECT_EQ(created_, 1);
  cover.forget(tenant);
  settle();
  EXPECT_EQ(created_, 1);
}

}  // namespace
}  // namespace firebreak::strays
