// SPDX-License-Identifier: Apache-2.0
/// Floating-point arithmetic, comparisons and conversions, bit exact, with their edge cases.
#include "softgpu/interpreter/instruction_cases.h"

namespace firebreak::softgpu::testing {
namespace {

class FloatInstruction : public ::testing::TestWithParam<InstructionCase> {};
TEST_P(FloatInstruction, GivesTheExactResult) { check(GetParam()); }

constexpr std::uint64_t one = 0x3F800000;
constexpr std::uint64_t infinity = 0x7F800000;
constexpr std::uint64_t negative = 0x80000000;
constexpr std::uint64_t nan_value = 0x7FC01234;
constexpr std::uint64_t canonical = 0x7FFFFFFF;
constexpr std::uint64_t largest = 0x7F7FFFFF;
constexpr std::uint64_t tiny = 0x00000001;

// clang-format off
INSTANTIATE_TEST_SUITE_P(Single, FloatInstruction, ::testing::Values(
    InstructionCase{"add.f32 %d32, %a32, %b32;", {one, one}, 0x40000000},
    InstructionCase{"add.f32 %d32, %a32, %b32;", {infinity, infinity | negative}, canonical},
    InstructionCase{"add.f32 %d32, %a32, %b32;", {nan_value, one}, canonical},
    InstructionCase{"add.f32 %d32, %a32, %b32;", {tiny, tiny}, 2},
    InstructionCase{"add.ftz.f32 %d32, %a32, %b32;", {tiny, tiny}, 0},
    InstructionCase{"sub.ftz.f32 %d32, %a32, %b32;", {0x00800001, 0x00800000}, 0},
    InstructionCase{"add.sat.f32 %d32, %a32, %b32;", {one, one}, one},
    InstructionCase{"add.sat.f32 %d32, %a32, %b32;", {nan_value, one}, 0},
    InstructionCase{"add.rz.f32 %d32, %a32, %b32;", {one, 0x33FFFFFF}, one},
    InstructionCase{"add.rp.f32 %d32, %a32, %b32;", {one, tiny}, 0x3F800001},
    InstructionCase{"add.rm.f32 %d32, %a32, %b32;", {one | negative, tiny | negative}, 0xBF800001},
    InstructionCase{"mul.rz.f32 %d32, %a32, %b32;", {largest, largest}, largest},
    InstructionCase{"mul.rn.f32 %d32, %a32, %b32;", {largest, largest}, infinity},
    InstructionCase{"mul.f32 %d32, %a32, %b32;", {0, infinity}, canonical},
    InstructionCase{"fma.rn.f32 %d32, %a32, %b32, %c32;", {0x3F800001, 0x3F800001, 0xBF800002}, 0x28800000},
    InstructionCase{"fma.rz.f32 %d32, %a32, %b32, %c32;", {one, one, 0x33FFFFFF}, one},
    InstructionCase{"fma.rn.f32 %d32, %a32, %b32, %c32;", {infinity, 0, one}, canonical},
    InstructionCase{"fma.rn.sat.f32 %d32, %a32, %b32, %c32;", {one, one, one}, one},
    InstructionCase{"div.rn.f32 %d32, %a32, %b32;", {one, 0x40400000}, 0x3EAAAAAB},
    InstructionCase{"div.rz.f32 %d32, %a32, %b32;", {one, 0x40400000}, 0x3EAAAAAA},
    InstructionCase{"div.rn.f32 %d32, %a32, %b32;", {one, 0x80000000}, 0xFF800000},
    InstructionCase{"rcp.approx.f32 %d32, %a32;", {0x40000000}, 0x3F000000},
    InstructionCase{"sqrt.rn.f32 %d32, %a32;", {0x40000000}, 0x3FB504F3},
    InstructionCase{"sqrt.rp.f32 %d32, %a32;", {0x40000000}, 0x3FB504F4},
    InstructionCase{"sqrt.rn.f32 %d32, %a32;", {one | negative}, canonical},
    InstructionCase{"rsqrt.approx.f32 %d32, %a32;", {0x40800000}, 0x3F000000},
    InstructionCase{"ex2.approx.f32 %d32, %a32;", {0x40400000}, 0x41000000},
    InstructionCase{"ex2.approx.ftz.f32 %d32, %a32;", {0xC3000000 | 0x00160000}, 0},
    InstructionCase{"lg2.approx.f32 %d32, %a32;", {0x41000000}, 0x40400000},
    InstructionCase{"lg2.approx.f32 %d32, %a32;", {0}, infinity | negative},
    InstructionCase{"sin.approx.f32 %d32, %a32;", {negative}, negative},
    InstructionCase{"cos.approx.f32 %d32, %a32;", {0}, one},
    InstructionCase{"tanh.approx.f32 %d32, %a32;", {infinity | negative}, one | negative},
    InstructionCase{"min.f32 %d32, %a32, %b32;", {0, negative}, negative},
    InstructionCase{"max.f32 %d32, %a32, %b32;", {nan_value, one}, one},
    InstructionCase{"max.f32 %d32, %a32, %b32;", {nan_value, nan_value}, canonical},
    InstructionCase{"max.NaN.f32 %d32, %a32, %b32;", {nan_value, one}, canonical},
    InstructionCase{"max.xorsign.abs.f32 %d32, %a32, %b32;", {one | negative, 0x40000000}, 0xC0000000},
    InstructionCase{"neg.f32 %d32, %a32;", {0}, negative},
    InstructionCase{"abs.ftz.f32 %d32, %a32;", {tiny | negative}, 0},
    InstructionCase{"copysign.f32 %d32, %a32, %b32;", {negative, one}, one | negative},
    InstructionCase{"testp.subnormal.f32 %d1, %a32;", {tiny}, 1, 1},
    InstructionCase{"testp.notanumber.f32 %d1, %a32;", {nan_value}, 1, 1},
    InstructionCase{"testp.finite.f32 %d1, %a32;", {infinity}, 0, 1}));

INSTANTIATE_TEST_SUITE_P(Double, FloatInstruction, ::testing::Values(
    InstructionCase{"add.f64 %d64, %a64, %b64;", {0x3FF0000000000000, 0x3CA0000000000000}, 0x3FF0000000000000, 64},
    InstructionCase{"add.rp.f64 %d64, %a64, %b64;", {0x3FF0000000000000, 1}, 0x3FF0000000000001, 64},
    InstructionCase{"mul.rm.f64 %d64, %a64, %b64;", {0xBFF0000000000001, 0x3FF0000000000001}, 0xBFF0000000000003, 64},
    InstructionCase{"fma.rn.f64 %d64, %a64, %b64, %c64;", {0x3FF0000000000001, 0x3FF0000000000001, 0xBFF0000000000002}, 0x3970000000000000, 64},
    InstructionCase{"div.rn.f64 %d64, %a64, %b64;", {0x3FF0000000000000, 0x4008000000000000}, 0x3FD5555555555555, 64},
    InstructionCase{"sqrt.rn.f64 %d64, %a64;", {0x4000000000000000}, 0x3FF6A09E667F3BCD, 64},
    InstructionCase{"rcp.approx.ftz.f64 %d64, %a64;", {0x4000000000000000}, 0x3FE0000000000000, 64},
    InstructionCase{"min.f64 %d64, %a64, %b64;", {0x7FF8000000000000, 0x3FF0000000000000}, 0x3FF0000000000000, 64}));

INSTANTIATE_TEST_SUITE_P(Half, FloatInstruction, ::testing::Values(
    InstructionCase{"add.f16 %d16, %a16, %b16;", {0x3C00, 0x1000}, 0x3C00, 16},
    InstructionCase{"add.f16 %d16, %a16, %b16;", {0x3C01, 0x1000}, 0x3C02, 16},
    InstructionCase{"add.f16 %d16, %a16, %b16;", {0x7BFF, 0x7BFF}, 0x7C00, 16},
    InstructionCase{"add.f16 %d16, %a16, %b16;", {0x0001, 0x0001}, 0x0002, 16},
    InstructionCase{"add.ftz.f16 %d16, %a16, %b16;", {0x0001, 0x0001}, 0x0000, 16},
    InstructionCase{"add.sat.f16 %d16, %a16, %b16;", {0x3C00, 0x3C00}, 0x3C00, 16},
    InstructionCase{"sub.f16 %d16, %a16, %b16;", {0x7C00, 0x7C00}, 0x7FFF, 16},
    InstructionCase{"mul.f16 %d16, %a16, %b16;", {0x0001, 0x3800}, 0x0000, 16},
    InstructionCase{"mul.f16 %d16, %a16, %b16;", {0x0003, 0x3800}, 0x0002, 16},
    InstructionCase{"fma.rn.f16 %d16, %a16, %b16, %c16;", {0x3C01, 0x3C01, 0xBC02}, 0x0010, 16},
    InstructionCase{"fma.rn.relu.f16 %d16, %a16, %b16, %c16;", {0x3C00, 0x3C00, 0xC000}, 0x0000, 16},
    InstructionCase{"fma.rn.f16x2 %d32, %a32, %b32, %c32;", {0x40003C00, 0x42004000, 0x3C003C00}, 0x47004200},
    InstructionCase{"add.f16x2 %d32, %a32, %b32;", {0x3C004000, 0x3C003C00}, 0x40004200},
    InstructionCase{"neg.f16x2 %d32, %a32;", {0x3C00C000}, 0xBC004000},
    InstructionCase{"min.f16x2 %d32, %a32, %b32;", {0x3C007E00, 0x40003C00}, 0x3C003C00},
    InstructionCase{"max.NaN.f16 %d16, %a16, %b16;", {0x7E00, 0x3C00}, 0x7FFF, 16},
    InstructionCase{"max.bf16 %d16, %a16, %b16;", {0x8000, 0x0000}, 0x0000, 16},
    InstructionCase{"fma.rn.bf16 %d16, %a16, %b16, %c16;", {0x3F81, 0x3F81, 0xBF82}, 0x3880, 16},
    InstructionCase{"fma.rn.bf16 %d16, %a16, %b16, %c16;", {0x3FA0, 0x3F9A, 0x0001}, 0x3FC1, 16},
    InstructionCase{"fma.rn.bf16x2 %d32, %a32, %b32, %c32;", {0x3F804000, 0x3F803F80, 0x3F800000}, 0x40004000},
    InstructionCase{"abs.bf16 %d16, %a16;", {0xBF80}, 0x3F80, 16},
    InstructionCase{"ex2.approx.f16 %d16, %a16;", {0x4200}, 0x4800, 16},
    InstructionCase{"tanh.approx.bf16 %d16, %a16;", {0x7F80}, 0x3F80, 16},
    InstructionCase{"setp.lt.f16x2 %p|%d1, %a32, %b32;", {0x3C004000, 0x40003C00}, 1, 1},
    InstructionCase{"set.eq.f16x2.f16x2 %d32, %a32, %b32;", {0x3C004000, 0x3C003C00}, 0x3C000000},
    InstructionCase{"set.eq.u32.f16x2 %d32, %a32, %b32;", {0x3C004000, 0x40004000}, 0x0000FFFF}));

INSTANTIATE_TEST_SUITE_P(Comparison, FloatInstruction, ::testing::Values(
    InstructionCase{"setp.lt.f32 %d1, %a32, %b32;", {nan_value, one}, 0, 1},
    InstructionCase{"setp.ltu.f32 %d1, %a32, %b32;", {nan_value, one}, 1, 1},
    InstructionCase{"setp.ne.f32 %d1, %a32, %b32;", {nan_value, one}, 0, 1},
    InstructionCase{"setp.neu.f32 %d1, %a32, %b32;", {nan_value, one}, 1, 1},
    InstructionCase{"setp.equ.f32 %d1, %a32, %b32;", {nan_value, one}, 1, 1},
    InstructionCase{"setp.eq.f32 %d1, %a32, %b32;", {0, negative}, 1, 1},
    InstructionCase{"setp.num.f32 %d1, %a32, %b32;", {one, nan_value}, 0, 1},
    InstructionCase{"setp.nan.f64 %d1, %a64, %b64;", {0x7FF8000000000000, 0}, 1, 1},
    InstructionCase{"setp.eq.ftz.f32 %d1, %a32, %b32;", {tiny, 0}, 1, 1},
    InstructionCase{"setp.gt.f32 %d1, %a32, %b32;", {tiny, 0}, 1, 1},
    InstructionCase{"setp.ge.bf16 %d1, %a16, %b16;", {0x3F80, 0x3F80}, 1, 1}));

INSTANTIATE_TEST_SUITE_P(ToInteger, FloatInstruction, ::testing::Values(
    InstructionCase{"cvt.rzi.s32.f32 %d32, %a32;", {0xC0200000}, static_cast<std::uint32_t>(-2)},
    InstructionCase{"cvt.rni.s32.f32 %d32, %a32;", {0x40200000}, 2},
    InstructionCase{"cvt.rmi.s32.f32 %d32, %a32;", {0xC0200000}, static_cast<std::uint32_t>(-3)},
    InstructionCase{"cvt.rpi.s32.f32 %d32, %a32;", {0x40200000}, 3},
    InstructionCase{"cvt.rzi.s32.f32 %d32, %a32;", {infinity}, 0x7FFFFFFF},
    InstructionCase{"cvt.rzi.s32.f32 %d32, %a32;", {0xCF800000}, 0x80000000},
    InstructionCase{"cvt.rzi.u32.f32 %d32, %a32;", {one | negative}, 0},
    InstructionCase{"cvt.rzi.u32.f32 %d32, %a32;", {nan_value}, 0},
    InstructionCase{"cvt.rzi.u32.f32 %d32, %a32;", {0x4F7FFFFF}, 0xFFFFFF00},
    InstructionCase{"cvt.rzi.s64.f32 %d64, %a32;", {nan_value}, 0x8000000000000000, 64},
    InstructionCase{"cvt.rzi.s64.f64 %d64, %a64;", {0x43E0000000000000}, 0x7FFFFFFFFFFFFFFF, 64},
    InstructionCase{"cvt.rzi.u64.f64 %d64, %a64;", {0x43EFFFFFFFFFFFFF}, 0xFFFFFFFFFFFFF800, 64},
    InstructionCase{"cvt.rzi.s16.f16 %d16, %a16;", {0x7C00}, 0x7FFF, 16},
    InstructionCase{"cvt.rzi.u8.f32 %d32, %a32;", {0x43960000}, 255},
    InstructionCase{"cvt.rzi.s8.f32 %d32, %a32;", {0xC3960000}, 0xFFFFFF80}));

INSTANTIATE_TEST_SUITE_P(FromInteger, FloatInstruction, ::testing::Values(
    InstructionCase{"cvt.rn.f32.s32 %d32, %a32;", {0x7FFFFFFF}, 0x4F000000},
    InstructionCase{"cvt.rz.f32.s32 %d32, %a32;", {0x7FFFFFFF}, 0x4EFFFFFF},
    InstructionCase{"cvt.rp.f32.u64 %d32, %a64;", {0x8000000000000001}, 0x5F000001},
    InstructionCase{"cvt.rn.f64.u64 %d64, %a64;", {~0ULL}, 0x43F0000000000000, 64},
    InstructionCase{"cvt.rn.f16.s32 %d16, %a32;", {100000}, 0x7C00, 16},
    InstructionCase{"cvt.rz.f16.s32 %d16, %a32;", {100000}, 0x7BFF, 16},
    InstructionCase{"cvt.rn.bf16.u64 %d16, %a64;", {0x8080000000000001}, 0x5F01, 16},
    InstructionCase{"cvt.rn.f32.u8 %d32, %a16;", {0x1FF}, 0x437F0000},
    InstructionCase{"cvt.s32.s8 %d32, %a16;", {0x80}, 0xFFFFFF80},
    InstructionCase{"cvt.u32.u8 %d32, %a32;", {0x1FF}, 0xFF},
    InstructionCase{"cvt.sat.u8.s32 %d32, %a32;", {0xFFFFFFFF}, 0},
    InstructionCase{"cvt.sat.s16.s32 %d16, %a32;", {0x12345}, 0x7FFF, 16},
    InstructionCase{"cvt.s64.s32 %d64, %a32;", {0x80000000}, 0xFFFFFFFF80000000, 64},
    InstructionCase{"cvt.pack.sat.s16.s32 %d32, %a32, %b32;", {0x12345, 0xFFFFFFFE}, 0x7FFFFFFE},
    InstructionCase{"cvt.pack.sat.u8.s32.b32 %d32, %a32, %b32, %c32;", {300, 0xFFFFFFFE, 0x1234}, 0x1234FF00}));

INSTANTIATE_TEST_SUITE_P(FloatToFloat, FloatInstruction, ::testing::Values(
    InstructionCase{"cvt.rn.f16.f32 %d16, %a32;", {0x477FF000}, 0x7C00, 16},
    InstructionCase{"cvt.rn.f16.f32 %d16, %a32;", {0x477FEFFF}, 0x7BFF, 16},
    InstructionCase{"cvt.rn.f16.f32 %d16, %a32;", {0x33000000}, 0, 16},
    InstructionCase{"cvt.rn.f16.f32 %d16, %a32;", {0x33000001}, 1, 16},
    InstructionCase{"cvt.rz.f16.f32 %d16, %a32;", {0x477FF000}, 0x7BFF, 16},
    InstructionCase{"cvt.rm.f16.f32 %d16, %a32;", {0xC77FF000}, 0xFC00, 16},
    InstructionCase{"cvt.rn.relu.f16.f32 %d16, %a32;", {one | negative}, 0, 16},
    InstructionCase{"cvt.f32.f16 %d32, %a16;", {0x0001}, 0x33800000},
    InstructionCase{"cvt.f32.f16 %d32, %a16;", {0xFC00}, infinity | negative},
    InstructionCase{"cvt.rn.bf16.f32 %d16, %a32;", {0x3F808000}, 0x3F80, 16},
    InstructionCase{"cvt.rn.bf16.f32 %d16, %a32;", {0x3F818000}, 0x3F82, 16},
    InstructionCase{"cvt.rz.bf16.f32 %d16, %a32;", {0x3F81FFFF}, 0x3F81, 16},
    InstructionCase{"cvt.rn.f16x2.f32 %d32, %a32, %b32;", {one, 0x40000000}, 0x3C004000},
    InstructionCase{"cvt.rn.bf16x2.f32 %d32, %a32, %b32;", {one, 0x40000000}, 0x3F804000},
    InstructionCase{"cvt.rn.f32.f64 %d32, %a64;", {0x3FF0000010000000}, one},
    InstructionCase{"cvt.rp.f32.f64 %d32, %a64;", {0x3FF0000000000001}, 0x3F800001},
    InstructionCase{"cvt.f64.f32 %d64, %a32;", {tiny}, 0x36A0000000000000, 64},
    InstructionCase{"cvt.ftz.f64.f32 %d64, %a32;", {tiny}, 0, 64},
    InstructionCase{"cvt.rn.f16.f64 %d16, %a64;", {0x3FF0020000000001}, 0x3C01, 16},
    InstructionCase{"cvt.rni.f32.f32 %d32, %a32;", {0x40200000}, 0x40000000},
    InstructionCase{"cvt.rmi.f64.f64 %d64, %a64;", {0xBFE0000000000000}, 0xBFF0000000000000, 64},
    InstructionCase{"cvt.sat.f32.f32 %d32, %a32;", {nan_value}, 0},
    InstructionCase{"cvt.sat.f32.f32 %d32, %a32;", {0x40000000}, one},
    InstructionCase{"cvt.rna.tf32.f32 %d32, %a32;", {0x3F801000}, 0x3F802000},
    InstructionCase{"cvt.rn.f32.f64 %d32, %a64;", {0x47F0000000000000}, infinity}));
// clang-format on

}  // namespace
}  // namespace firebreak::softgpu::testing
