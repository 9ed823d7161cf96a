// SPDX-License-Identifier: Apache-2.0
#include "inject/accesses.h"
#include "inject/kinds.h"
#include "inject/targets.h"

namespace firebreak::inject {

constinit const Kind load_beyond_1gib{
    .name = "load-beyond-1gib",
    .summary = "a kernel loads from 1 GiB beyond an allocation's begin",
    .fault_class = fault::FaultClass::MmuReplayable,
    .expectation = {.faulter = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .co_client = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .xids = mmu_xids,
                    .first_seen_by = fault::FaultSource::UvmEvent,
                    .under_guard = UnderGuard::Contained},
    .ptx = load_word.ptx,
    .prepare = &prepare_kernel<load_word, &one_gib_beyond>,
};

}  // namespace firebreak::inject
