// SPDX-License-Identifier: Apache-2.0
#include "inject/accesses.h"
#include "inject/kinds.h"
#include "inject/targets.h"

namespace firebreak::inject {

constinit const Kind illegal_instruction{
    .name = "illegal-instruction",
    .summary = "a kernel calls into data, bytes that are no instruction",
    .fault_class = fault::FaultClass::Sm,
    // PTX has no word for a wrong instruction, and a binary of one GPU generation is none for another.
    .expectation = {.faulter = CUDA_ERROR_ILLEGAL_INSTRUCTION,
                    .co_client = CUDA_ERROR_ILLEGAL_INSTRUCTION,
                    .xids = sm_xids,
                    .first_seen_by = fault::FaultSource::Xid,
                    .measured = false},
    .ptx = call_target.ptx,
    .prepare = &prepare_kernel<call_target, &memory_full_of_ones>,
};

}  // namespace firebreak::inject
