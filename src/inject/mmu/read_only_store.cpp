// SPDX-License-Identifier: Apache-2.0
#include "inject/accesses.h"
#include "inject/kinds.h"
#include "inject/targets.h"

namespace firebreak::inject {

constinit const Kind read_only_store{
    .name = "read-only-store",
    .summary = "a kernel stores to memory that is mapped read-only",
    .fault_class = fault::FaultClass::MmuReplayable,
    .expectation = {.faulter = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .co_client = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .xids = mmu_xids,
                    .first_seen_by = fault::FaultSource::UvmEvent},
    .ptx = store_word.ptx,
    .prepare = &prepare_kernel<store_word, &read_only_memory>,
};

}  // namespace firebreak::inject
