// SPDX-License-Identifier: Apache-2.0
#include "inject/accesses.h"
#include "inject/kinds.h"
#include "inject/targets.h"

namespace firebreak::inject {

constinit const Kind unmapped_atomic_near{
    .name = "unmapped-atomic-near",
    .summary = "a kernel adds atomically 16 GiB past the end of an allocation",
    .fault_class = fault::FaultClass::MmuReplayable,
    .expectation = {.faulter = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .co_client = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .xids = mmu_xids,
                    .first_seen_by = fault::FaultSource::UvmEvent,
                    .measured = false,
                    .under_guard = UnderGuard::Contained},
    .ptx = add_atomically.ptx,
    .prepare = &prepare_kernel<add_atomically, &far_past_end>,
};

}  // namespace firebreak::inject
