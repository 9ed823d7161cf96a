// SPDX-License-Identifier: Apache-2.0
#include "inject/accesses.h"
#include "inject/kinds.h"
#include "inject/targets.h"

namespace firebreak::inject {

constinit const Kind null_load{
    .name = "null-load",
    .summary = "a kernel loads through a null pointer",
    .fault_class = fault::FaultClass::MmuReplayable,
    .expectation = {.faulter = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .co_client = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .xids = mmu_xids,
                    .first_seen_by = fault::FaultSource::UvmEvent,
                    .under_guard = UnderGuard::ContainedWithPageZero},
    .ptx = load_word.ptx,
    .prepare = &prepare_kernel<load_word, &the_number<0>>,
};

}  // namespace firebreak::inject
