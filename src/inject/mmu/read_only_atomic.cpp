// SPDX-License-Identifier: Apache-2.0
#include "inject/accesses.h"
#include "inject/kinds.h"
#include "inject/targets.h"

namespace firebreak::inject {

constinit const Kind read_only_atomic{
    .name = "read-only-atomic",
    .summary = "a kernel adds atomically to memory that is mapped read-only",
    .fault_class = fault::FaultClass::MmuReplayable,
    .expectation = {.faulter = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .co_client = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .xids = mmu_xids,
                    .first_seen_by = fault::FaultSource::UvmEvent},
    .ptx = add_atomically.ptx,
    .prepare = &prepare_kernel<add_atomically, &read_only_memory>,
};

}  // namespace firebreak::inject
