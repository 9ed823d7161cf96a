// SPDX-License-Identifier: Apache-2.0
/// Kernels that touch what is at `target` in one way each; where `target` is makes the kind.
#pragma once

#include "inject/kernel_fault.h"

namespace firebreak::inject {

/// A warp stores 7.
inline constexpr Kernel store_word{.ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry store_word(.param .u64 target, .param .u64 sink)
{
  .reg .u64 %address;
  .reg .u32 %value;
  ld.param.u64 %address, [target];
  mov.u32 %value, 7;
  st.volatile.u32 [%address], %value;
  ret;
}
)",
                                   .name = "store_word",
                                   .threads = 32};

inline constexpr Kernel load_word{.ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry load_word(.param .u64 target, .param .u64 sink)
{
  .reg .u64 %address, %sink;
  .reg .u32 %value;
  ld.param.u64 %address, [target];
  ld.param.u64 %sink, [sink];
  ld.volatile.u32 %value, [%address];
  st.u32 [%sink], %value;
  ret;
}
)",
                                  .name = "load_word"};

/// Uses the old value, which makes it an atomic and no reduction.
inline constexpr Kernel add_atomically{.ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry add_atomically(.param .u64 target, .param .u64 sink)
{
  .reg .u64 %address, %sink;
  .reg .u32 %old;
  ld.param.u64 %address, [target];
  ld.param.u64 %sink, [sink];
  atom.add.u32 %old, [%address], 1;
  st.u32 [%sink], %old;
  ret;
}
)",
                                       .name = "add_atomically"};

/// Like an atomic, but nothing comes back to the SM.
inline constexpr Kernel reduce_word{.ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry reduce_word(.param .u64 target, .param .u64 sink)
{
  .reg .u64 %address;
  ld.param.u64 %address, [target];
  red.add.u32 [%address], 1;
  ret;
}
)",
                                    .name = "reduce_word"};

/// Calls the function at `target`; it would be given the sink.
inline constexpr Kernel call_target{.ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry call_target(.param .u64 target, .param .u64 sink)
{
  .reg .u64 %function, %sink;
  takes_address: .callprototype _ (.param .b64 argument);
  ld.param.u64 %function, [target];
  ld.param.u64 %sink, [sink];
  {
    .param .b64 argument;
    st.param.b64 [argument], %sink;
    call %function, (argument), takes_address;
  }
  ret;
}
)",
                                    .name = "call_target"};

}  // namespace firebreak::inject
