// SPDX-License-Identifier: Apache-2.0
#include "inject/kinds.h"
#include "inject/termination/ending_process.h"

namespace firebreak::inject {

constinit const Kind sigkill_short_kernel{
    .name = "sigkill-short-kernel",
    .summary = "the process is killed while a kernel runs that would end by itself soon",
    .fault_class = fault::FaultClass::Termination,
    .expectation = {.faulter = CUDA_SUCCESS,
                    .co_client = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .xids = mmu_xids,
                    .first_seen_by = fault::FaultSource::MpsLog},
    .ptx = working_kernel_ptx,
    .prepare = &prepare_ending<short_kernel, Ending::Kill>,
};

}  // namespace firebreak::inject
