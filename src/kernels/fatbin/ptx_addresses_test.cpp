// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "kernels/fatbin/ptx_text.h"

namespace firebreak::fatbin {
namespace {

constexpr const char* declarations =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .global .align 4 .u32 steps = 0;\n.const .align 8 .f64 pi;\n"
    ".global .align 1 .b8 $str[3] = {104, 105, 0};\n"
    ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n";

bool may_store(const std::string& text) {
  const Code code = code_of_ptx(declarations + text);
  EXPECT_TRUE(!code.obstacle || code.obstacle == Obstacle::StoresAddresses) << to_string(*code.obstacle);
  return code.obstacle == Obstacle::StoresAddresses;
}
bool kernel_may_store(const std::string& body) {
  return may_store(
      ".visible .entry k(.param .u64 out, .param .u64 in)\n{\n.reg .u64 %p, %a, %b, %c;\n.reg .u32 %x;\n"
      ".reg .pred %q;\n.local .align 8 .b8 depot[16];\n" +
      body + "ret;\n}\n");
}

TEST(PtxAddresses, ToUseOneStoresNone) {
  EXPECT_FALSE(kernel_may_store("mov.u64 %a, steps; ld.global.u32 %x, [%a]; st.global.u32 [%a], %x;"));
  EXPECT_FALSE(kernel_may_store("ld.global.u32 %x, [steps]; st.global.u32 [steps+0], %x;"));
  EXPECT_FALSE(
      kernel_may_store("mov.u64 %a, steps; atom.global.add.u32 %x, [%a], 1; red.global.add.u32 [%a], %x;"));
  EXPECT_FALSE(kernel_may_store("ld.const.f64 %fd, [pi]; st.global.f64 [%p], %fd;"));
  EXPECT_FALSE(kernel_may_store(
      "mov.u64 %a, steps; setp.eq.u64 %q, %a, %p; selp.u32 %x, 1, 0, %q; st.global.u32 [%p], %x;"));
}

TEST(PtxAddresses, OneThatIsStoredIsFound) {
  EXPECT_TRUE(kernel_may_store("mov.u64 %a, steps; st.global.u64 [%p], %a;"));
  EXPECT_TRUE(kernel_may_store("mov.u64 %a, pi; st.u64 [%p], %a;")) << "constants lie elsewhere, too";
  EXPECT_TRUE(kernel_may_store("mov.u64 %a, $str; st.global.u64 [%p], %a;")) << "and texts";
  EXPECT_TRUE(kernel_may_store("mov.u64 %a, steps; st.shared.u64 [%p], %a;"));
  EXPECT_TRUE(kernel_may_store("mov.u64 %a, steps; st.global.v2.u64 [%p], {%b, %a};"));
  EXPECT_TRUE(kernel_may_store("mov.u64 %a, steps; atom.global.exch.b64 %b, [%p], %a;"));
  EXPECT_TRUE(kernel_may_store("mov.u64 %a, steps; red.async.relaxed.b64 [%p], %a, [%c];"));
  EXPECT_TRUE(kernel_may_store("mov.u64 %a, steps; @!%q st.global.u64 [%p], %a;"));
  EXPECT_TRUE(kernel_may_store("mov.u64 %a, steps; @%q st.global.u64 [%p], %a;"));
}

TEST(PtxAddresses, WhatIsComputedOfOneCounts) {
  EXPECT_TRUE(kernel_may_store("cvta.global.u64 %a, steps; add.s64 %b, %a, 8; st.global.u64 [%p], %b;"));
  EXPECT_TRUE(kernel_may_store("mov.u64 %a, steps+4; mov.b64 {%x, %y}, %a; st.global.u32 [%p], %y;"));
  EXPECT_TRUE(kernel_may_store("mov.u64 %a, steps; selp.b64 %b, %c, %a, %q; st.global.u64 [%p], %b;"));
  EXPECT_TRUE(
      kernel_may_store("mov.u64 %a, steps; shfl.sync.idx.b32 %x|%q, %a, 0, 31, -1; st.global.u32 [%p], %x;"));
  EXPECT_TRUE(
      kernel_may_store("again: st.global.u64 [%p], %b; mov.u64 %b, %a; mov.u64 %a, steps; bra again;"))
      << "a loop's next turn stores it";
}

TEST(PtxAddresses, LocalMemoryIsFollowed) {
  EXPECT_FALSE(kernel_may_store(
      "mov.u64 %a, $str; st.local.u64 [depot], %a; ld.global.u64 %b, [%p]; st.global.u64 [%p], %b;"));
  EXPECT_TRUE(kernel_may_store(
      "mov.u64 %a, steps; st.local.u64 [depot], %a; ld.local.u64 %b, [depot]; st.global.u64 [%p], %b;"));
  EXPECT_TRUE(kernel_may_store(
      "mov.u64 %a, steps; st.local.u64 [depot], %a; ld.u64 %b, [%c]; st.global.u64 [%p], %b;"));
}

TEST(PtxAddresses, PrintfKeepsNothing) {
  const std::string print =
      "{\n.param .b64 param0;\nst.param.b64 [param0+0], %a;\n.param .b64 param1;\nst.param.b64 [param1+0], "
      "0;\n"
      ".param .b32 retval0;\ncall.uni (retval0), vprintf, (param0, param1);\nld.param.b32 %x, "
      "[retval0+0];\n}\n";
  EXPECT_FALSE(kernel_may_store("mov.u64 %a, $str;" + print + "st.global.u32 [%p], %x;"));
}

TEST(PtxAddresses, ArgumentsAndResultsOfFunctionsAreFollowed) {
  const std::string store =
      ".func store(.param .b64 store_0, .param .b64 store_1)\n{\n.reg .b64 %r<3>;\nld.param.u64 %r1, "
      "[store_0];\n"
      "ld.param.u64 %r2, [store_1];\nst.global.u64 [%r1], %r2;\nret;\n}\n";
  const auto call = [](const char* value) {
    return std::string(
               ".entry k(.param .u64 out)\n{\nmov.u64 %a, steps;\n{\n.param .b64 param0;\n"
               "st.param.b64 [param0+0], %p;\n.param .b64 param1;\nst.param.b64 [param1+0], ") +
           value + ";\ncall.uni store, (param0, param1);\n}\nret;\n}\n";
  };
  EXPECT_FALSE(may_store(store + call("%p")));
  EXPECT_TRUE(may_store(store + call("%a")));
  const std::string of =
      ".func (.param .b64 result) of()\n{\nmov.u64 %a, steps;\nst.param.b64 [result+0], %a;\nret;\n}\n";
  const std::string take =
      "{\n.param .b64 retval0;\ncall.uni (retval0), of;\nld.param.b64 %b, [retval0+0];\n}\n";
  EXPECT_FALSE(may_store(of + ".entry k()\n{\n" + take + "ld.global.u32 %x, [%b];\nret;\n}\n"));
  EXPECT_TRUE(may_store(of + ".entry k()\n{\n" + take + "st.global.u64 [%p], %b;\nret;\n}\n"));
}

TEST(PtxAddresses, RegistersMayBeParameters) {
  const std::string store =
      ".func store(.reg .u64 to, .reg .u64 what)\n{\nst.global.u64 [to], what;\nret;\n}\n";
  const auto call = [](const char* value) {
    return std::string(".entry k(.param .u64 out)\n{\nmov.u64 %a, steps;\ncall.uni store, (%p, ") + value +
           ");\nret;\n}\n";
  };
  EXPECT_FALSE(may_store(store + call("%p")));
  EXPECT_TRUE(may_store(store + call("%a")));
  const std::string of = ".func (.reg .u64 result) of()\n{\nmov.u64 result, steps;\nret;\n}\n";
  const std::string take = ".entry k()\n{\ncall.uni (%b), of;\n";
  EXPECT_FALSE(may_store(of + take + "ld.global.u32 %x, [%b];\nret;\n}\n"));
  EXPECT_TRUE(may_store(of + take + "st.global.u64 [%p], %b;\nret;\n}\n"));
}

TEST(PtxAddresses, AFunctionMayStoreToItsCallersLocalMemory) {
  const std::string fill =
      ".func fill(.param .b64 fill_0)\n{\nld.param.u64 %r1, [fill_0];\ncvta.to.local.u64 %r2, %r1;\n"
      "mov.u64 %r3, steps;\nst.local.u64 [%r2], %r3;\nret;\n}\n";
  const auto call = [](const char* use) {
    return std::string(
               ".entry k(.param .u64 out)\n{\n.local .align 8 .b8 depot[16];\ncvta.local.u64 %c, depot;\n{\n"
               ".param .b64 param0;\nst.param.b64 [param0+0], %c;\ncall.uni fill, (param0);\n}\n") +
           use + "ret;\n}\n";
  };
  EXPECT_FALSE(may_store(fill + call("ld.local.u64 %b, [depot];\nld.global.u32 %x, [%b];\n")));
  EXPECT_TRUE(may_store(fill + call("ld.local.u64 %b, [depot];\nst.global.u64 [%p], %b;\n")));
}

TEST(PtxAddresses, AParameterMayBeReadByItsAddress) {
  const std::string store =
      ".func store(.param .align 8 .b8 store_0[16])\n{\nmov.b64 %r1, store_0;\nld.u64 %r2, [%r1];\n"
      "ld.u64 %r3, [%r1+8];\nst.global.u64 [%r2], %r3;\nret;\n}\n";
  const auto call = [](const char* value) {
    return std::string(
               ".entry k(.param .u64 out)\n{\nmov.u64 %a, steps;\n{\n.param .align 8 .b8 param0[16];\n"
               "st.param.b64 [param0+0], %p;\nst.param.b64 [param0+8], ") +
           value + ";\ncall.uni store, (param0);\n}\nret;\n}\n";
  };
  EXPECT_FALSE(may_store(store + call("%p")));
  EXPECT_TRUE(may_store(store + call("%a")));
}

TEST(PtxAddresses, ParametersMayBeDeclaredTogether) {
  const std::string of =
      ".func (.param .b64 result) of(.param .b64 of_0)\n{\nmov.u64 %r1, steps;\n"
      "st.param.b64 [result+0], %r1;\nret;\n}\n";
  EXPECT_TRUE(may_store(of +
                        ".entry k(.param .u64 out)\n{\n.param .b64 given, taken;\nst.param.b64 [given], %p;\n"
                        "call.uni (taken), of, (given);\nld.param.b64 %b, [taken];\nst.global.u64 [%p], %b;\n"
                        "ret;\n}\n"));
}

TEST(PtxAddresses, AFunctionLiesElsewhereToo) {
  const std::string function = ".func f()\n{\nret;\n}\n";
  EXPECT_FALSE(may_store(function + ".entry k()\n{\ncall.uni f;\nret;\n}\n"));
  EXPECT_TRUE(may_store(function + ".entry k()\n{\nmov.u64 %a, f;\nst.global.u64 [%p], %a;\nret;\n}\n"));
}

TEST(PtxAddresses, PlacesInTheSourceHideNothing) {
  EXPECT_TRUE(kernel_may_store("mov.u64 %a, steps;\n.loc 1 23 5\nst.global.u64 [%p], %a;"));
  EXPECT_TRUE(
      kernel_may_store("mov.u64 %a, steps;\n.loc 1 2 3, function_name $L__info + 4, inlined_at 1 2 3\n"
                       ".loc 1 23 5\n$label:\n@%q st.global.u64 [%p], %a;"));
}

TEST(PtxAddresses, WhatEndsTooEarlyIsNotTrusted) {
  EXPECT_TRUE(may_store(".entry k()\n{\nmov.u64 %a, steps;\n"));
}

}  // namespace
}  // namespace firebreak::fatbin
