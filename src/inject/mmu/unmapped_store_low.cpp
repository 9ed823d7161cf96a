// SPDX-License-Identifier: Apache-2.0
#include "inject/accesses.h"
#include "inject/kinds.h"
#include "inject/targets.h"

namespace firebreak::inject {

constinit const Kind unmapped_store_low{
    .name = "unmapped-store-low",
    .summary = "a kernel stores to 0xdead0000, a pointer cut to 32 bits",
    .fault_class = fault::FaultClass::MmuReplayable,
    .expectation = {.faulter = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .co_client = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .xids = mmu_xids,
                    .first_seen_by = fault::FaultSource::UvmEvent,
                    .measured = false,
                    .under_guard = UnderGuard::Contained},
    .ptx = store_word.ptx,
    .prepare = &prepare_kernel<store_word, &low_address>,
};

}  // namespace firebreak::inject
