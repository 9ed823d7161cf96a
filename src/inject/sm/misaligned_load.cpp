// SPDX-License-Identifier: Apache-2.0
#include "inject/accesses.h"
#include "inject/kinds.h"
#include "inject/targets.h"

namespace firebreak::inject {

constinit const Kind misaligned_load{
    .name = "misaligned-load",
    .summary = "a kernel loads four bytes from an odd address",
    .fault_class = fault::FaultClass::Sm,
    .expectation = {.faulter = CUDA_ERROR_MISALIGNED_ADDRESS,
                    .co_client = CUDA_ERROR_MISALIGNED_ADDRESS,
                    .sometimes = CUDA_ERROR_LAUNCH_FAILED,
                    .xids = sm_xids,
                    .first_seen_by = fault::FaultSource::Xid},
    .ptx = load_word.ptx,
    .prepare = &prepare_kernel<load_word, &odd_address>,
};

}  // namespace firebreak::inject
