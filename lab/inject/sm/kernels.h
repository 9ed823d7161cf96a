// SPDX-License-Identifier: Apache-2.0
/// Kernels of one kind of fault each; accesses.h has those of several.
#pragma once

#include "inject/kernel_fault.h"

namespace firebreak::inject {

inline constexpr Kernel barrier_misuse_kernel{.ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry barrier_misuse(.param .u64 target, .param .u64 sink)
{
  .reg .u64 %target;
  .reg .u32 %barrier;
  ld.param.u64 %target, [target];
  cvt.u32.u64 %barrier, %target;
  barrier.sync %barrier;
  ret;
}
)",
                                              .name = "barrier_misuse",
                                              .threads = 32};

/// Compiled as nvcc compiles assert(false).
inline constexpr Kernel assertion_kernel{.ptx = R"(.version 7.0
.target sm_70
.address_size 64

.extern .func __assertfail(.param .b64 message, .param .b64 file, .param .b32 line, .param .b64 function,
                           .param .b64 letter_bytes);
.global .align 1 .b8 wrong[6] = {119, 114, 111, 110, 103, 0};

.visible .entry failed_assertion(.param .u64 target, .param .u64 sink)
{
  .reg .u64 %text;
  mov.u64 %text, wrong;
  cvta.global.u64 %text, %text;
  {
    .param .b64 message;
    .param .b64 file;
    .param .b32 line;
    .param .b64 function;
    .param .b64 letter_bytes;
    st.param.b64 [message], %text;
    st.param.b64 [file], %text;
    st.param.b32 [line], 1;
    st.param.b64 [function], %text;
    st.param.b64 [letter_bytes], 1;
    call.uni __assertfail, (message, file, line, function, letter_bytes);
  }
  ret;
}
)",
                                         .name = "failed_assertion"};

/// 16 bytes from one byte beyond `target`'s begin, by the copy that does not wait.
inline constexpr Kernel misaligned_copy_kernel{.ptx = R"(.version 7.0
.target sm_80
.address_size 64

.visible .entry misaligned_copy(.param .u64 target, .param .u64 sink)
{
  .shared .align 16 .b8 window[64];
  .reg .u64 %from, %sink;
  .reg .u32 %value, %to;
  ld.param.u64 %from, [target];
  ld.param.u64 %sink, [sink];
  mov.u32 %to, window;
  cp.async.ca.shared.global [%to], [%from], 16;
  cp.async.wait_all;
  ld.shared.u32 %value, [%to];
  st.u32 [%sink], %value;
  ret;
}
)",
                                               .name = "misaligned_copy"};

/// `target` is how far its barrier is from where it could be.
inline constexpr Kernel misaligned_mbarrier_kernel{.ptx = R"(.version 7.0
.target sm_80
.address_size 64

.visible .entry misaligned_mbarrier(.param .u64 target, .param .u64 sink)
{
  .shared .align 8 .b8 window[64];
  .reg .u64 %offset;
  .reg .u32 %barrier, %by;
  ld.param.u64 %offset, [target];
  cvt.u32.u64 %by, %offset;
  mov.u32 %barrier, window;
  add.u32 %barrier, %barrier, %by;
  mbarrier.init.shared.b64 [%barrier], 1;
  ret;
}
)",
                                                   .name = "misaligned_mbarrier"};

/// 8 bytes, of which `target` is not the begin of a word.
inline constexpr Kernel add_atomically_64{.ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry add_atomically_64(.param .u64 target, .param .u64 sink)
{
  .reg .u64 %address, %sink, %old;
  ld.param.u64 %address, [target];
  ld.param.u64 %sink, [sink];
  atom.add.u64 %old, [%address], 1;
  st.u64 [%sink], %old;
  ret;
}
)",
                                          .name = "add_atomically_64"};

inline constexpr Kernel breakpoint_kernel{.ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry breakpoint(.param .u64 target, .param .u64 sink)
{
  brkpt;
  ret;
}
)",
                                          .name = "breakpoint"};

inline constexpr Kernel local_out_of_bounds_kernel{.ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry local_out_of_bounds(.param .u64 target, .param .u64 sink)
{
  .local .align 4 .b8 frame[64];
  .reg .u64 %address, %offset, %sink;
  .reg .u32 %value;
  ld.param.u64 %offset, [target];
  ld.param.u64 %sink, [sink];
  mov.u64 %address, frame;
  add.u64 %address, %address, %offset;
  ld.local.u32 %value, [%address];
  st.u32 [%sink], %value;
  ret;
}
)",
                                                   .name = "local_out_of_bounds"};

/// Stays for a while after the store: on an H100 a kernel that ends at once, and the wait for it, succeed
/// before the exception is told.
inline constexpr Kernel misaligned_store_kernel{.ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry misaligned_store(.param .u64 target, .param .u64 sink)
{
  .reg .u64 %address, %begin, %now, %elapsed;
  .reg .u32 %value, %turns;
  .reg .pred %again;
  ld.param.u64 %address, [target];
  mov.u32 %value, 7;
  st.volatile.u32 [%address], %value;
  mov.u64 %begin, %globaltimer;
  mov.u32 %turns, 0;
turn:
  mov.u64 %now, %globaltimer;
  sub.u64 %elapsed, %now, %begin;
  add.u32 %turns, %turns, 1;
  setp.lt.u64 %again, %elapsed, 200000000;
  setp.lt.and.u32 %again, %turns, 16777216, %again;
  @%again bra turn;
  ret;
}
)",
                                                .name = "misaligned_store"};

inline constexpr Kernel shared_out_of_bounds_kernel{.ptx = R"(.version 7.0
.target sm_70
.address_size 64

.extern .shared .align 4 .b8 window[];

.visible .entry shared_out_of_bounds(.param .u64 target, .param .u64 sink)
{
  .reg .u64 %address, %offset, %sink;
  .reg .u32 %value;
  ld.param.u64 %offset, [target];
  ld.param.u64 %sink, [sink];
  mov.u64 %address, window;
  add.u64 %address, %address, %offset;
  ld.volatile.shared.u32 %value, [%address];
  st.u32 [%sink], %value;
  ret;
}
)",
                                                    .name = "shared_out_of_bounds",
                                                    .threads = 32,
                                                    .shared_bytes = 1024};

inline constexpr Kernel stack_overflow_kernel{.ptx = R"(.version 7.0
.target sm_70
.address_size 64

.func (.param .b32 result) descend(.param .b32 depth)
{
  .local .align 4 .b8 frame[1024];
  .reg .u64 %slot, %offset;
  .reg .u32 %depth, %rest, %deeper, %own;
  .reg .pred %bottom;
  ld.param.u32 %depth, [depth];
  and.b32 %own, %depth, 255;
  mul.wide.u32 %offset, %own, 4;
  mov.u64 %slot, frame;
  add.u64 %slot, %slot, %offset;
  st.local.u32 [%slot], %depth;
  mov.u32 %deeper, 0;
  setp.eq.u32 %bottom, %depth, 0;
  @%bottom bra done;
  sub.u32 %rest, %depth, 1;
  {
    .param .b32 argument;
    .param .b32 answer;
    st.param.b32 [argument], %rest;
    call (answer), descend, (argument);
    ld.param.b32 %deeper, [answer];
  }
done:
  ld.local.u32 %own, [%slot];
  add.u32 %own, %own, %deeper;
  st.param.b32 [result], %own;
  ret;
}

.visible .entry stack_overflow(.param .u64 target, .param .u64 sink)
{
  .reg .u64 %levels, %sink;
  .reg .u32 %depth, %sum;
  ld.param.u64 %levels, [target];
  ld.param.u64 %sink, [sink];
  cvt.u32.u64 %depth, %levels;
  {
    .param .b32 argument;
    .param .b32 answer;
    st.param.b32 [argument], %depth;
    call (answer), descend, (argument);
    ld.param.b32 %sum, [answer];
  }
  st.u32 [%sink], %sum;
  ret;
}
)",
                                              .name = "stack_overflow"};

inline constexpr Kernel trap_kernel{.ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry trap(.param .u64 target, .param .u64 sink)
{
  trap;
  ret;
}
)",
                                    .name = "trap"};

inline constexpr Kernel illegal_instruction_kernel{.ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry illegal_instruction(.param .u64 target, .param .u64 sink)
{
  .reg .u64 %sink;
  .reg .u32 %value;
  ld.param.u64 %sink, [sink];
  mov.u32 %value, 7;
  st.u32 [%sink], %value;
  ret;
}
)",
                                                   .name = "illegal_instruction"};

}  // namespace firebreak::inject
