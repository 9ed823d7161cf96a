// SPDX-License-Identifier: Apache-2.0
#include "inject/accesses.h"
#include "inject/kinds.h"
#include "inject/targets.h"

namespace firebreak::inject {

constinit const Kind unmapped_load_near{
    .name = "unmapped-load-near",
    .summary = "a kernel loads from 16 GiB past the end of an allocation",
    .fault_class = fault::FaultClass::MmuReplayable,
    .expectation = {.faulter = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .co_client = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .xids = mmu_xids,
                    .first_seen_by = fault::FaultSource::UvmEvent,
                    .measured = false,
                    .under_guard = UnderGuard::Contained},
    .ptx = load_word.ptx,
    .prepare = &prepare_kernel<load_word, &far_past_end>,
};

}  // namespace firebreak::inject
