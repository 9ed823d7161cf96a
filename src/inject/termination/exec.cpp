// SPDX-License-Identifier: Apache-2.0
#include "inject/kinds.h"
#include "inject/termination/ending_process.h"

namespace firebreak::inject {

constinit const Kind exec{
    .name = "exec",
    .summary = "the process becomes another program while its kernel runs",
    .fault_class = fault::FaultClass::Termination,
    // The process lives on; what it had on the GPU does not.
    .expectation = {.faulter = CUDA_SUCCESS,
                    .co_client = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .xids = mmu_xids,
                    .first_seen_by = fault::FaultSource::MpsLog},
    .ptx = working_kernel_ptx,
    .prepare = &prepare_ending<one_block, Ending::Exec>,
};

}  // namespace firebreak::inject
