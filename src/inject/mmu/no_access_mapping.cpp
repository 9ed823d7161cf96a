// SPDX-License-Identifier: Apache-2.0
#include "inject/accesses.h"
#include "inject/kinds.h"
#include "inject/targets.h"

namespace firebreak::inject {

constinit const Kind no_access_mapping{
    .name = "no-access-mapping",
    .summary = "a kernel loads from memory that is mapped and that nobody was given rights to",
    .fault_class = fault::FaultClass::MmuReplayable,
    .expectation = {.faulter = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .co_client = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .xids = mmu_xids,
                    .first_seen_by = fault::FaultSource::UvmEvent,
                    .under_guard = UnderGuard::Contained},
    .ptx = load_word.ptx,
    .prepare = &prepare_kernel<load_word, &memory_without_rights>,
};

}  // namespace firebreak::inject
