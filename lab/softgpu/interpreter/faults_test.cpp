// SPDX-License-Identifier: Apache-2.0
/// These tests raise every fault kind and check its access, address and line, and what is left in memory.
#include <gmock/gmock.h>

#include <thread>

#include "softgpu/interpreter/generic_windows.h"
#include "softgpu/interpreter/test_gpu.h"

namespace firebreak::softgpu {
namespace {

using testing::ptx_header;
using testing::TestGpu;

/// A kernel of one line (line 12), run with an address by one thread.
std::string one_line(const std::string& line) {
  return ptx_header + R"(.visible .entry test(.param .u64 address)
{
  .reg .b64 %rd<4>; .reg .b32 %r<4>; .reg .f32 %f<4>;
  .shared .align 16 .b8 tile[64];
  .local .align 16 .b8 depot[32];
  ld.param.u64 %rd0, [address];
  cvt.u32.u64 %r0, %rd0;
  mov.b32 %r1, 7; )" +
         "\n  " + line + "\n  ret;\n}\n";
}
constexpr std::uint32_t tested_line = 12;

struct FaultCase {
  const char* line;
  std::uint64_t address;
  GpuFaultKind kind;
  GpuAccess access;
  std::uint64_t reported = ~std::uint64_t{0};  ///< The address itself is all ones.
};
std::ostream& operator<<(std::ostream& out, const FaultCase& test) {
  return out << test.line << " 0x" << std::hex << test.address;
}

constexpr std::uint64_t unmapped = 0x1000'0000;

class Faults : public ::testing::TestWithParam<FaultCase> {};

TEST_P(Faults, AreRaisedWithAddressAndLine) {
  const FaultCase& test = GetParam();
  TestGpu gpu;
  gpu.use(one_line(test.line));
  gpu.allocate(4096);                        // 0x7000'0000'0000
  gpu.allocate(4096, PageAccess::ReadOnly);  // 0x7000'0020'0000
  const LaunchOutcome outcome = gpu.run("test", {1}, {1}, test.address);
  const auto* fault = std::get_if<GpuFault>(&outcome);
  ASSERT_NE(fault, nullptr);
  EXPECT_EQ(fault->kind, test.kind) << to_string(fault->kind);
  EXPECT_EQ(fault->access, test.access);
  EXPECT_EQ(fault->address, test.reported == ~std::uint64_t{0} ? test.address : test.reported);
  EXPECT_EQ(fault->ptx_line, tested_line);
  EXPECT_EQ(fault->kernel, "test");
}

using Kind = GpuFaultKind;
// clang-format off
INSTANTIATE_TEST_SUITE_P(Global, Faults, ::testing::Values(
    FaultCase{"st.global.u32 [%rd0], %r1;", unmapped, Kind::UnmappedAccess, GpuAccess::Store},
    FaultCase{"ld.global.u32 %r1, [%rd0];", unmapped, Kind::UnmappedAccess, GpuAccess::Load},
    FaultCase{"ld.u32 %r1, [%rd0];", 0, Kind::UnmappedAccess, GpuAccess::Load},
    FaultCase{"atom.global.add.u32 %r1, [%rd0], 1;", unmapped, Kind::UnmappedAccess, GpuAccess::Atomic},
    FaultCase{"red.global.add.u32 [%rd0], 1;", unmapped, Kind::UnmappedAccess, GpuAccess::Atomic},
    FaultCase{"ld.const.u32 %r1, [%rd0];", unmapped + 1, Kind::MisalignedAddress, GpuAccess::Load},
    FaultCase{"ld.global.u32 %r1, [%rd0];", TestGpu::first_address + 4096, Kind::UnmappedAccess, GpuAccess::Load},
    FaultCase{"ld.global.u32 %r1, [%rd0+4];", TestGpu::first_address + 4092, Kind::UnmappedAccess, GpuAccess::Load, TestGpu::first_address + 4096},
    FaultCase{"st.global.v4.u32 [%rd0], {%r1, %r1, %r1, %r1};", TestGpu::first_address + 4096, Kind::UnmappedAccess, GpuAccess::Store},
    FaultCase{"st.global.u32 [%rd0], %r1;", TestGpu::first_address + 0x20'0000, Kind::ReadOnlyViolation, GpuAccess::Store},
    FaultCase{"st.u8 [%rd0], %r1;", TestGpu::first_address + 0x20'0001, Kind::ReadOnlyViolation, GpuAccess::Store},
    FaultCase{"atom.cas.b32 %r1, [%rd0], 1, 2;", TestGpu::first_address + 0x20'0000, Kind::ReadOnlyViolation, GpuAccess::Atomic},
    FaultCase{"ld.global.u32 %r1, [%rd0];", TestGpu::first_address + 2, Kind::MisalignedAddress, GpuAccess::Load},
    FaultCase{"ld.global.v2.u32 {%r1, %r2}, [%rd0];", TestGpu::first_address + 4, Kind::MisalignedAddress, GpuAccess::Load},
    FaultCase{"st.global.v4.u32 [%rd0], {%r1, %r1, %r1, %r1};", TestGpu::first_address + 8, Kind::MisalignedAddress, GpuAccess::Store},
    FaultCase{"ld.global.u64 %rd1, [%rd0];", unmapped + 1, Kind::MisalignedAddress, GpuAccess::Load},
    FaultCase{"atom.add.f32 %f0, [%rd0], 0f3F800000;", TestGpu::first_address + 1, Kind::MisalignedAddress, GpuAccess::Atomic},
    FaultCase{"st.global.u32 [%rd0], %r1;", 0xDEAD'0000'0000'0000, Kind::OutOfRangeAddress, GpuAccess::Store},
    FaultCase{"ld.u32 %r1, [%rd0];", 0x0001'0000'0000'0000, Kind::OutOfRangeAddress, GpuAccess::Load},
    FaultCase{"ld.u32 %r1, [%rd0];", 0xFFFF'FFFF'FFFF'FFF0, Kind::UnmappedAccess, GpuAccess::Load},
    FaultCase{"cp.async.ca.shared.global [tile], [%rd0], 16;", unmapped, Kind::UnmappedAccess, GpuAccess::Load}));

INSTANTIATE_TEST_SUITE_P(Windows, Faults, ::testing::Values(
    FaultCase{"st.shared.u32 [%rd0], %r1;", 64, Kind::SharedOutOfBounds, GpuAccess::Store},
    FaultCase{"st.shared.u32 [%r0], %r1;", 0xFFFFFFF0, Kind::SharedOutOfBounds, GpuAccess::Store},
    FaultCase{"ld.shared.u32 %r1, [%rd0];", 3, Kind::MisalignedAddress, GpuAccess::Load},
    FaultCase{"atom.shared.add.u32 %r1, [%rd0], 1;", 128, Kind::SharedOutOfBounds, GpuAccess::Atomic},
    FaultCase{"ld.u32 %r1, [%rd0];", shared_window_base + 0x1000, Kind::SharedOutOfBounds, GpuAccess::Load, 0x1000},
    FaultCase{"ld.local.u32 %r1, [%rd0];", 0x100000, Kind::LocalOutOfBounds, GpuAccess::Load},
    FaultCase{"st.u32 [%rd0], %r1;", local_window_base + 0x100000, Kind::LocalOutOfBounds, GpuAccess::Store, 0x100000},
    FaultCase{"st.u32 [%rd0], %r1;", parameter_window_base, Kind::ReadOnlyViolation, GpuAccess::Store}));

INSTANTIATE_TEST_SUITE_P(Control, Faults, ::testing::Values(
    FaultCase{"trap;", 0, Kind::Trap, GpuAccess::None},
    FaultCase{"brkpt;", 0, Kind::Breakpoint, GpuAccess::None},
    FaultCase{"{ proto: .callprototype _ (); call %rd0, (), proto; }", TestGpu::first_address, Kind::IllegalInstruction, GpuAccess::Fetch},
    FaultCase{"{ proto: .callprototype _ (); call %rd0, (), proto; }", unmapped, Kind::InstructionFetch, GpuAccess::Fetch},
    FaultCase{"{ proto: .callprototype _ (); call %rd0, (), proto; }", code_base + 7 * code_address_step, Kind::InstructionFetch, GpuAccess::Fetch},
    FaultCase{"{ ts: .branchtargets here; brx.idx %r0, ts; here: }", 5, Kind::InstructionFetch, GpuAccess::Fetch}));
// clang-format on

// An H100 does the same.
TEST(Constants, AreZeroBeyondTheirBank) {
  TestGpu gpu;
  const std::uint64_t out = gpu.upload(std::vector<std::uint32_t>{7});
  gpu.use(one_line("ld.const.u32 %r1, [%rd0]; mov.b64 %rd1, " + std::to_string(out) +
                   "; st.global.u32 [%rd1], %r1;"));
  gpu.complete("test", {1}, {1}, unmapped);
  EXPECT_EQ(gpu.download<std::uint32_t>(out, 1).at(0), 0U);
}

const std::string recursion = ptx_header + R"(
.func down(.param .b32 depth)
{
  .reg .b32 %r<2>; .reg .pred %p;
  .local .align 4 .b8 buffer[48];
  ld.param.u32 %r0, [depth];
  st.local.u32 [buffer], %r0;
  setp.eq.u32 %p, %r0, 0;
  @%p ret;
  add.s32 %r0, %r0, -1;
  { .param .b32 next; st.param.b32 [next], %r0; call down, (next); }
  ret;
}
.visible .entry test(.param .u32 depth)
{
  .reg .b32 %r;
  ld.param.u32 %r, [depth];
  { .param .b32 next; st.param.b32 [next], %r; call down, (next); }
  ret;
}
)";

TEST(StackOverflow, ComesWithTheCallThatNoLongerFits) {
  TestGpu gpu;
  gpu.use(recursion);
  gpu.complete("test", {1}, {1}, std::uint32_t{10});
  const LaunchOutcome outcome = gpu.run("test", {1}, {1}, std::uint32_t{100});
  const auto* fault = std::get_if<GpuFault>(&outcome);
  ASSERT_NE(fault, nullptr);
  EXPECT_EQ(fault->kind, GpuFaultKind::StackOverflow);
  EXPECT_GT(fault->address, 1024U);
  EXPECT_EQ(fault->ptx_line, 14U);
  Launch roomy = gpu.prepare("test", {1}, {1}, std::uint32_t{100});
  roomy.stack_limit_bytes = 16384;
  TestGpu::expect_completed(run_launch(roomy, gpu.memory, gpu.control));
}

const std::string half_written = ptx_header + R"(.visible .entry test(.param .u64 out)
{
  .reg .b64 %rd<3>; .reg .b32 %r<3>; .reg .pred %p;
  ld.param.u64 %rd0, [out];
  mov.u32 %r0, %ctaid.x;
  mul.wide.u32 %rd1, %r0, 4;
  add.s64 %rd1, %rd0, %rd1;
  st.global.u32 [%rd1], 1;
  setp.eq.u32 %p, %r0, 5;
  @%p trap;
  st.global.u32 [%rd1], 2;
  ret;
}
)";

TEST(HalfWrittenState, StaysAsItWasAtTheFault) {
  TestGpu gpu;
  gpu.use(half_written);
  const std::uint64_t out = gpu.allocate(32);
  const LaunchOutcome outcome = gpu.run("test", {8}, {1}, out);
  ASSERT_TRUE(std::holds_alternative<GpuFault>(outcome));
  EXPECT_THAT(gpu.download<std::uint32_t>(out, 8), ::testing::ElementsAre(2, 2, 2, 2, 2, 1, 0, 0));
}

TEST(Unmapping, IsSeenByARunningKernel) {
  TestGpu gpu;
  gpu.use(ptx_header + R"(.visible .entry test(.param .u64 out)
{
  .reg .b64 %rd; .reg .b32 %r;
  ld.param.u64 %rd, [out];
again:
  atom.global.add.u32 %r, [%rd], 1;
  bra again;
}
)");
  const std::uint64_t out = gpu.allocate(4096);
  const Translation seen = *gpu.memory.find(out);
  const auto* counter = reinterpret_cast<const std::uint32_t*>(seen.host);
  std::thread remover([&] {
    while (__atomic_load_n(counter, __ATOMIC_RELAXED) < 1000) std::this_thread::yield();
    gpu.memory.unmap(out, 4096);
  });
  const LaunchOutcome outcome = gpu.run("test", {1}, {1}, out);
  remover.join();
  ASSERT_TRUE(std::holds_alternative<GpuFault>(outcome));
  EXPECT_EQ(std::get<GpuFault>(outcome).kind, GpuFaultKind::UnmappedAccess);
  EXPECT_EQ(std::get<GpuFault>(outcome).access, GpuAccess::Atomic);
}

/// Asks to stop from the third question on.
class StopLater final : public ExecutionControl {
 public:
  bool should_stop() override { return ++questions == 3; }
  int questions = 0;
};

TEST(Stopping, EndsAnEndlessLoop) {
  TestGpu gpu;
  gpu.use(ptx_header + ".visible .entry test()\n{\nagain: bra again;\n}\n");
  StopLater control;
  control.attention = 1;
  EXPECT_TRUE(
      std::holds_alternative<Stopped>(run_launch(gpu.prepare("test", {1}, {64}), gpu.memory, control)));
  EXPECT_EQ(control.questions, 3);
}

TEST(Stopping, EndsABarrierThatNobodyCompletes) {
  TestGpu gpu;
  gpu.use(ptx_header + ".visible .entry test()\n{\nbar.sync 0, 64;\nret;\n}\n");
  StopLater control;
  control.attention = 1;
  EXPECT_TRUE(
      std::holds_alternative<Stopped>(run_launch(gpu.prepare("test", {1}, {32}), gpu.memory, control)));
}

TEST(HarmlessMisuse, OfBarrierNumbersAndPrefetches) {
  TestGpu gpu;
  gpu.use(one_line("bar.sync %r0; prefetch.global.L2 [%rd0]; prefetchu.L1 [%rd0];"));
  TestGpu::expect_completed(gpu.run("test", {1}, {1}, std::uint64_t{0x7000'dead'0014}));
}

TEST(Loading, NamesWhatIsNotSupported) {
  TestGpu gpu;
  const auto loaded = gpu.load(ptx_header + R"(.visible .entry test()
{
  .reg .b32 %r<4>; .reg .b64 %rd;
  .shared .align 16 .b8 tile[512];
  mov.u64 %rd, tile;
  ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%rd];
  ret;
}
)");
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, ErrorCode::InvalidArgument);
  EXPECT_THAT(loaded.error().message, ::testing::HasSubstr("line 9: ldmatrix"));
}

TEST(Loading, RefusesCallsToFunctionsWithoutABody) {
  TestGpu gpu;
  const auto loaded = gpu.load(ptx_header + R"(.extern .func absent();
.visible .entry test()
{
  call absent, ();
  ret;
}
)");
  ASSERT_FALSE(loaded);
  EXPECT_THAT(loaded.error().message, ::testing::HasSubstr("absent has no body"));
}

}  // namespace
}  // namespace firebreak::softgpu
