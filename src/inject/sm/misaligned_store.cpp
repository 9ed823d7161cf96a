// SPDX-License-Identifier: Apache-2.0
#include "inject/accesses.h"
#include "inject/kinds.h"
#include "inject/targets.h"

namespace firebreak::inject {

constinit const Kind misaligned_store{
    .name = "misaligned-store",
    .summary = "a kernel stores four bytes to an odd address",
    .fault_class = fault::FaultClass::Sm,
    .expectation = {.faulter = CUDA_ERROR_MISALIGNED_ADDRESS,
                    .co_client = CUDA_ERROR_MISALIGNED_ADDRESS,
                    .xids = sm_xids,
                    .first_seen_by = fault::FaultSource::Xid,
                    .measured = false},
    .ptx = store_word.ptx,
    .prepare = &prepare_kernel<store_word, &odd_address>,
};

}  // namespace firebreak::inject
