// SPDX-License-Identifier: Apache-2.0
#include "inject/accesses.h"
#include "inject/kinds.h"
#include "inject/targets.h"

namespace firebreak::inject {

constinit const Kind misaligned_atomic{
    .name = "misaligned-atomic",
    .summary = "a kernel adds atomically to four bytes at an odd address",
    .fault_class = fault::FaultClass::Sm,
    .expectation = {.faulter = CUDA_ERROR_MISALIGNED_ADDRESS,
                    .co_client = CUDA_ERROR_MISALIGNED_ADDRESS,
                    .sometimes = CUDA_ERROR_LAUNCH_FAILED,
                    .xids = sm_xids,
                    .first_seen_by = fault::FaultSource::Xid},
    .ptx = add_atomically.ptx,
    .prepare = &prepare_kernel<add_atomically, &odd_address>,
};

}  // namespace firebreak::inject
