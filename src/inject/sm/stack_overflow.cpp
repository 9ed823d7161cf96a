// SPDX-License-Identifier: Apache-2.0
#include "inject/kinds.h"
#include "inject/targets.h"

namespace firebreak::inject {
namespace {

// A kibibyte each: more than any stack limit allows.
constexpr CUdeviceptr levels = CUdeviceptr{1} << 20;

constexpr Kernel kernel{.ptx = R"(.version 7.0
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

}  // namespace

constinit const Kind stack_overflow{
    .name = "stack-overflow",
    .summary = "a kernel recurses beyond its stack",
    .fault_class = fault::FaultClass::Sm,
    .expectation = {.faulter = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .co_client = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .sometimes = CUDA_ERROR_LAUNCH_FAILED,
                    .xids = sm_xids,
                    .first_seen_by = fault::FaultSource::Xid},
    .ptx = kernel.ptx,
    .prepare = &prepare_kernel<kernel, &the_number<levels>>,
};

}  // namespace firebreak::inject
