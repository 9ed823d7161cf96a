// SPDX-License-Identifier: Apache-2.0
/// Tests use this: one instruction, its inputs and the exact result. The text uses %a %b %c as inputs and %d
/// as the result, each with its width in bits behind it (%a32, %d64, %d1 for a predicate, which becomes 0 or
/// 1).
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <ostream>
#include <string>

#include "softgpu/interpreter/test_gpu.h"

namespace firebreak::softgpu::testing {

struct InstructionCase {
  const char* text = "";
  std::array<std::uint64_t, 3> in{};
  std::uint64_t expected = 0;
  int result_bits = 32;
};

inline std::ostream& operator<<(std::ostream& out, const InstructionCase& test) {
  return out << test.text << std::hex << " a=0x" << test.in[0] << " b=0x" << test.in[1] << " c=0x"
             << test.in[2];
}

inline std::string registers_of(int bits) {
  const std::string width = std::to_string(bits);
  std::string text;
  for (const char* name : {"a", "b", "c", "d"}) text += "  .reg .b" + width + " %" + name + width + ";\n";
  return text;
}

/// Moves the inputs of 64 bits to registers of all widths, and the result to one of 64.
inline std::string kernel_around(const std::string& text, int result_bits) {
  std::string out =
      ptx_header + ".visible .entry test(.param .u64 out, .param .u64 a, .param .u64 b, .param .u64 c)\n{\n";
  for (const int bits : {16, 32, 64}) out += registers_of(bits);
  out += "  .reg .b64 %address, %result;\n  .reg .pred %p, %q, %d1;\n  .reg .b32 %e32;\n";
  out += "  mov.b64 %result, 0;\n  mov.b64 %d64, 0;\n  mov.b32 %d32, 0;\n  mov.b16 %d16, 0;\n";
  for (const char* name : {"a", "b", "c"}) {
    const std::string n = name;
    out += "  ld.param.b64 %" + n + "64, [" + n + "];\n";
    out += "  cvt.u32.u64 %" + n + "32, %" + n + "64;\n  cvt.u16.u64 %" + n + "16, %" + n + "64;\n";
  }
  out += "  setp.ne.u64 %p, %a64, 0;\n  setp.ne.u64 %q, %b64, 0;\n";
  out += "  " + text + "\n";
  if (result_bits == 1) out += "  selp.b64 %result, 1, 0, %d1;\n";
  if (result_bits == 16) out += "  cvt.u64.u16 %result, %d16;\n";
  if (result_bits == 32) out += "  cvt.u64.u32 %result, %d32;\n";
  if (result_bits == 64) out += "  mov.b64 %result, %d64;\n";
  return out + "  ld.param.b64 %address, [out];\n  st.global.b64 [%address], %result;\n  ret;\n}\n";
}

inline void check(const InstructionCase& test) {
  TestGpu gpu;
  gpu.use(kernel_around(test.text, test.result_bits));
  if (::testing::Test::HasFatalFailure()) return;
  const std::uint64_t out = gpu.allocate(8);
  gpu.complete("test", {1}, {1}, out, test.in[0], test.in[1], test.in[2]);
  const std::uint64_t result = gpu.download<std::uint64_t>(out, 1)[0];
  EXPECT_EQ(result, test.expected) << test << std::hex << " gave 0x" << result;
}

}  // namespace firebreak::softgpu::testing
