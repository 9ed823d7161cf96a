// SPDX-License-Identifier: Apache-2.0
/// For tests: a kernel around a few instructions, and one launch of it.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/access/decision.h"
#include "kernels/access/effects.h"
#include "kernels/access/summary.h"
#include "kernels/ptx/parse.h"

namespace firebreak::access::testing {

inline constexpr std::uint64_t a = 0x7000'0000'0000;
inline constexpr std::uint64_t b = 0x7000'0100'0000;

/// %rd1 and %rd2 are the pointers, %r1 is n; %r2 the block's index, %r4 the thread's in it, %r5 in the grid;
/// %rd3 is four times that, %rd4 and %rd5 are that many bytes behind the pointers. `before` stands before the
/// kernel.
inline std::string kernel_text(const std::string& body, const std::string& before = "") {
  return ".version 8.0\n.target sm_80\n.address_size 64\n" + before +
         ".visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n)\n{\n"
         ".reg .pred %p<20>; .reg .b16 %rs<9>; .reg .b32 %r<60>; .reg .b64 %rd<60>;\n"
         ".shared .align 16 .b8 tile[512];\n"
         "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u32 %r1, [n];\n"
         "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;\n"
         "mad.lo.s32 %r5, %r2, %r3, %r4; mul.wide.s32 %rd3, %r5, 4;\n"
         "add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;\n" +
         body + "\nDONE: ret;\n}\n";
}

/// Of 4 blocks of 32 threads, with two allocations of 64 KiB.
class AnalysedLaunch : public ::testing::Test {
 protected:
  KernelSummary summary_of(const std::string& body, const std::string& before = "") {
    const auto module = ptx::parse(kernel_text(body, before), "test", ptx::UnknownInstructions::Kept);
    EXPECT_TRUE(module) << module.error().message << "\n" << body;
    if (!module) return {};
    const std::uint32_t index = ptx::find_function(*module, "k");
    return summarise(*module, module->functions.at(index));
  }
  LaunchArguments launch() {
    parameters_.resize(20);
    std::memcpy(parameters_.data(), &first, 8);
    std::memcpy(parameters_.data() + 8, &second, 8);
    std::memcpy(parameters_.data() + 16, &n, 4);
    LaunchArguments launch;
    launch.grid = grid;
    launch.block = {32, 1, 1};
    launch.parameters = parameters_;
    launch.memory = memory;
    launch.variable_addresses = variable_addresses;
    return launch;
  }
  Verdict verdict(const std::string& body, const std::string& before = "") {
    return decide(summary_of(body, before), launch(), workspace).verdict;
  }
  OperationEffects effects(const std::string& body, const std::string& before = "") {
    return find_effects(summary_of(body, before), launch(), workspace);
  }

  std::array<std::uint32_t, 3> grid{4, 1, 1};
  std::uint64_t first = a;
  std::uint64_t second = b;
  std::uint32_t n = 100;
  std::vector<MemoryRange> memory{{a, 1 << 16, a}, {b, 1 << 16, b}};
  std::vector<std::uint64_t> variable_addresses;
  DecisionWorkspace workspace;

 private:
  std::vector<std::byte> parameters_;
};

}  // namespace firebreak::access::testing
