// SPDX-License-Identifier: Apache-2.0
#include "inject/accesses.h"
#include "inject/kinds.h"
#include "inject/targets.h"

namespace firebreak::inject {
namespace {

// Inside no code segment of any driver seen so far.
constexpr CUdeviceptr no_code = 0x1234'5670;

}  // namespace

constinit const Kind bad_program_counter{
    .name = "bad-program-counter",
    .summary = "a kernel calls a function pointer that was made from a number",
    .fault_class = fault::FaultClass::MmuReplayable,
    .expectation = {.faulter = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .co_client = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .xids = mmu_xids,
                    .first_seen_by = fault::FaultSource::UvmEvent},
    .ptx = call_target.ptx,
    .prepare = &prepare_kernel<call_target, &the_number<no_code>>,
};

}  // namespace firebreak::inject
