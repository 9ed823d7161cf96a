// SPDX-License-Identifier: Apache-2.0
#include "inject/accesses.h"
#include "inject/kinds.h"
#include "inject/targets.h"

namespace firebreak::inject {

constinit const Kind unmapped_atomic_far{
    .name = "unmapped-atomic-far",
    .summary = "a kernel adds atomically at 0x7000dead0000, far from every allocation",
    .fault_class = fault::FaultClass::MmuReplayable,
    .expectation = {.faulter = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .co_client = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .xids = mmu_xids,
                    .first_seen_by = fault::FaultSource::UvmEvent},
    .ptx = add_atomically.ptx,
    .prepare = &prepare_kernel<add_atomically, &unmapped_address>,
};

}  // namespace firebreak::inject
