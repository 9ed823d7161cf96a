// SPDX-License-Identifier: Apache-2.0
#include "inject/accesses.h"
#include "inject/kinds.h"
#include "inject/targets.h"

namespace firebreak::inject {

constinit const Kind unmapped_reduction_far{
    .name = "unmapped-reduction-far",
    .summary = "a kernel adds at 0x7000dead0000, far from every allocation and wants no answer",
    .fault_class = fault::FaultClass::MmuReplayable,
    .expectation = {.faulter = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .co_client = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .xids = mmu_xids,
                    .first_seen_by = fault::FaultSource::UvmEvent},
    .ptx = reduce_word.ptx,
    .prepare = &prepare_kernel<reduce_word, &unmapped_address>,
};

}  // namespace firebreak::inject
