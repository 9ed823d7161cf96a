// SPDX-License-Identifier: Apache-2.0
#include "inject/kinds.h"
#include "inject/targets.h"

namespace firebreak::inject {
namespace {

constexpr Kernel kernel{.ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry unmapped_prefetch(.param .u64 target, .param .u64 sink)
{
  .reg .u64 %address;
  ld.param.u64 %address, [target];
  prefetch.global.L2 [%address];
  ret;
}
)",
                        .name = "unmapped_prefetch"};

}  // namespace

constinit const Kind unmapped_prefetch_far{
    .name = "unmapped-prefetch-far",
    .summary = "a kernel prefetches into the L2 cache from 0x7000dead0000, far from every allocation",
    .fault_class = fault::FaultClass::MmuReplayable,
    // A hint: the hardware may drop it.
    .expectation = {.faulter = CUDA_SUCCESS,
                    .co_client = CUDA_SUCCESS,
                    .xids = {},
                    .first_seen_by = std::nullopt},
    .ptx = kernel.ptx,
    .prepare = &prepare_kernel<kernel, &unmapped_address>,
};

}  // namespace firebreak::inject
