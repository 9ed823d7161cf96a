// SPDX-License-Identifier: Apache-2.0
#include "inject/accesses.h"
#include "inject/kinds.h"
#include "inject/targets.h"

namespace firebreak::inject {
namespace {

constexpr CUdeviceptr not_canonical = 0xdead'7000'dead'0000;

}  // namespace

constinit const Kind non_canonical_address{
    .name = "non-canonical-address",
    .summary = "a kernel loads from an address with more bits than the GPU has",
    .fault_class = fault::FaultClass::Sm,
    .expectation = {.faulter = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .co_client = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .sometimes = CUDA_ERROR_LAUNCH_FAILED,
                    .xids = sm_xids,
                    .first_seen_by = fault::FaultSource::Xid},
    .ptx = load_word.ptx,
    .prepare = &prepare_kernel<load_word, &the_number<not_canonical>>,
};

}  // namespace firebreak::inject
