// SPDX-License-Identifier: Apache-2.0
#include "inject/kinds.h"
#include "inject/termination/ending_process.h"

namespace firebreak::inject {

constinit const Kind sigterm{
    .name = "sigterm",
    .summary = "the process gets SIGTERM while its kernel runs",
    .fault_class = fault::FaultClass::Termination,
    .expectation = {.faulter = CUDA_SUCCESS,
                    .co_client = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .xids = mmu_xids,
                    .first_seen_by = fault::FaultSource::MpsLog},
    .ptx = working_kernel_ptx,
    .prepare = &prepare_ending<one_block, Ending::Terminate>,
};

}  // namespace firebreak::inject
