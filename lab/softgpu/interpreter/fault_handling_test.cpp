// SPDX-License-Identifier: Apache-2.0
/// These tests show which accesses ask a fault handler, and what becomes of its answers.
#include <gmock/gmock.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "softgpu/interpreter/test_gpu.h"

namespace firebreak::softgpu {
namespace {

using testing::ptx_header;
using testing::TestGpu;

constexpr std::uint64_t serviced = 0x4000'0000'0000;
constexpr std::uint64_t sparse = 0x5000'0000'0000;
constexpr std::uint64_t fatal = 0x6000'0000'0000;
constexpr std::uint64_t page = 4096;

/// Services and makes sparse a TiB each, and remembers who asked.
class Handler : public FaultHandler {
 public:
  explicit Handler(AddressSpace& memory) : memory_(memory) {}

  FaultAnswer handle(const PageFault& fault) override {
    faults.push_back(fault);
    if (fault.address >> 40 == sparse >> 40)
      return {FaultAnswer::Kind::Sparse, sparse + (std::uint64_t{1} << 40)};
    if (fault.address >> 40 != serviced >> 40) return {};
    const auto owner = std::make_shared<std::vector<std::uint64_t>>(page / 8);
    const std::uint64_t begin = fault.address & ~(page - 1);
    memory_.map(
        {begin, begin + page, reinterpret_cast<std::byte*>(owner->data()), PageAccess::ReadWrite, owner});
    return {FaultAnswer::Kind::Serviced};
  }

  std::vector<PageFault> faults;

 private:
  AddressSpace& memory_;
};

class FaultHandling : public ::testing::Test {
 protected:
  FaultHandling() { gpu_.memory.set_fault_handler(&handler_); }

  /// Runs a kernel whose %rd0 is the address, plus 4096 bytes a lane, and whose %r0 goes to out[lane].
  LaunchOutcome run(const std::string& body, std::uint64_t address, std::uint32_t lanes = 1) {
    gpu_.use(ptx_header + R"(.visible .entry kernel(.param .u64 address, .param .u64 out) {
  .reg .b64 %rd<8>;
  .reg .b32 %r<8>;
  .shared .align 16 .b8 tile[64];
  ld.param.u64 %rd0, [address];
  mov.u32 %r7, %tid.x;
  mul.wide.u32 %rd1, %r7, 4096;
  add.u64 %rd0, %rd0, %rd1;
  mov.u32 %r0, 99;
  mov.u32 %r1, 5;
)" + body + R"(
  ld.param.u64 %rd2, [out];
  mul.wide.u32 %rd1, %r7, 4;
  add.u64 %rd2, %rd2, %rd1;
  st.global.u32 [%rd2], %r0;
  ret;
})");
    out_ = gpu_.upload(std::vector<std::uint32_t>(32));
    return gpu_.run("kernel", {1, 1, 1}, {lanes, 1, 1}, address, out_);
  }
  std::uint32_t out(std::size_t lane = 0) const { return gpu_.download<std::uint32_t>(out_, 32)[lane]; }

  TestGpu gpu_;
  Handler handler_{gpu_.memory};
  std::uint64_t out_ = 0;
};

TEST_F(FaultHandling, EveryKindOfAccessIsDoneAgainOnceItIsServiced) {
  struct Case {
    const char* body;
    GpuAccess access;
    std::uint32_t result;
  };
  const std::vector<Case> cases{
      {"ld.global.u32 %r0, [%rd0];", GpuAccess::Load, 0},
      {"st.u32 [%rd0], %r1; ld.u32 %r0, [%rd0];", GpuAccess::Store, 5},
      {"st.global.v4.u32 [%rd0], {%r1, %r1, %r1, %r1}; ld.u32 %r0, [%rd0+12];", GpuAccess::Store, 5},
      {"atom.global.add.u32 %r0, [%rd0], 3; atom.add.u32 %r0, [%rd0], 3;", GpuAccess::Atomic, 3},
      {"red.global.add.u32 [%rd0], 2; ld.global.u32 %r0, [%rd0];", GpuAccess::Atomic, 2},
      {"cp.async.ca.shared.global [tile], [%rd0], 16; cp.async.wait_all; ld.shared.u32 %r0, [tile];",
       GpuAccess::Load, 0},
  };
  std::uint64_t address = serviced;
  for (const Case& each : cases) {
    SCOPED_TRACE(each.body);
    handler_.faults.clear();
    TestGpu::expect_completed(run(each.body, address));
    EXPECT_EQ(out(), each.result);
    ASSERT_EQ(handler_.faults.size(), 1U);
    EXPECT_EQ(handler_.faults[0].address, address);
    EXPECT_EQ(handler_.faults[0].access, each.access);
    EXPECT_TRUE(handler_.faults[0].replayable);
    address += page;
  }
}

TEST_F(FaultHandling, MoreLanesThanCachedTranslationsEachHaveTheirMemory) {
  TestGpu::expect_completed(run("st.global.u32 [%rd0], %r7; ld.global.u32 %r0, [%rd0];", serviced, 32));
  EXPECT_EQ(handler_.faults.size(), 32U);
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(out(lane), lane);
    EXPECT_EQ(gpu_.download<std::uint32_t>(serviced + lane * page, 1)[0], lane);
  }
}

TEST_F(FaultHandling, SparseMemoryIsZeroWhateverWasWritten) {
  TestGpu::expect_completed(run(R"(
  st.global.v4.u32 [%rd0], {%r1, %r1, %r1, %r1};
  ld.global.u32 %r0, [%rd0+8];
  atom.global.add.u32 %r2, [%rd0], 3;
  add.u32 %r0, %r0, %r2;
  atom.global.add.u32 %r2, [%rd0], 3;
  add.u32 %r0, %r0, %r2;
  atom.global.cas.b32 %r2, [%rd0], 0, 9;
  add.u32 %r0, %r0, %r2;
  ld.global.v2.u64 {%rd3, %rd4}, [%rd0];
  cvt.u32.u64 %r2, %rd4;
  add.u32 %r0, %r0, %r2;)",
                                sparse, 32));
  for (std::uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(out(lane), 0U);
  EXPECT_FALSE(gpu_.memory.find(sparse));
}

TEST_F(FaultHandling, WhatTheHandlerCannotHelpIsAFaultAsBefore) {
  const LaunchOutcome outcome = run("st.global.u32 [%rd0], %r1;", fatal);
  const auto* fault = std::get_if<GpuFault>(&outcome);
  ASSERT_NE(fault, nullptr);
  EXPECT_EQ(fault->kind, GpuFaultKind::UnmappedAccess);
  EXPECT_EQ(fault->address, fatal);
  EXPECT_EQ(handler_.faults.size(), 1U);
}

TEST_F(FaultHandling, NobodyAsksAboutWhatIsNoPageFault) {
  struct Case {
    const char* body;
    std::uint64_t address;
    GpuFaultKind kind;
  };
  const std::vector<Case> cases{
      {"st.global.u32 [%rd0], %r1;", serviced + 2, GpuFaultKind::MisalignedAddress},
      {"st.global.u32 [%rd0], %r1;", 0xDEAD'0000'0000'0000, GpuFaultKind::OutOfRangeAddress},
      {"st.shared.u32 [%rd0], %r1;", 4096, GpuFaultKind::SharedOutOfBounds},
      {"ld.local.u32 %r1, [%rd0];", 0x100000, GpuFaultKind::LocalOutOfBounds},
      {"{ proto: .callprototype _ (); call %rd0, (), proto; }", serviced, GpuFaultKind::InstructionFetch},
      {"{ proto: .callprototype _ (); call %rd0, (), proto; }", sparse, GpuFaultKind::InstructionFetch},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.body);
    const LaunchOutcome outcome = run(each.body, each.address);
    const auto* fault = std::get_if<GpuFault>(&outcome);
    ASSERT_NE(fault, nullptr);
    EXPECT_EQ(fault->kind, each.kind);
  }
  TestGpu::expect_completed(run("prefetch.global.L2 [%rd0];", fatal));
  EXPECT_TRUE(handler_.faults.empty());
}

}  // namespace
}  // namespace firebreak::softgpu
