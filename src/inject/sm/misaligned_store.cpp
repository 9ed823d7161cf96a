// SPDX-License-Identifier: Apache-2.0
#include "inject/kinds.h"
#include "inject/targets.h"

namespace firebreak::inject {
namespace {

/// Stays for a while after the store: on an H100 a kernel that ends at once, and the wait for it, succeed
/// before the exception is told.
constexpr Kernel kernel{.ptx = R"(.version 7.0
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

}  // namespace

constinit const Kind misaligned_store{
    .name = "misaligned-store",
    .summary = "a kernel stores four bytes to an odd address",
    .fault_class = fault::FaultClass::Sm,
    .expectation = {.faulter = CUDA_ERROR_MISALIGNED_ADDRESS,
                    .co_client = CUDA_ERROR_MISALIGNED_ADDRESS,
                    .sometimes = CUDA_ERROR_LAUNCH_FAILED,
                    .xids = sm_xids,
                    .first_seen_by = fault::FaultSource::Xid},
    .ptx = kernel.ptx,
    .prepare = &prepare_kernel<kernel, &odd_address>,
};

}  // namespace firebreak::inject
