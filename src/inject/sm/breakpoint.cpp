// SPDX-License-Identifier: Apache-2.0
#include "inject/kinds.h"
#include "inject/targets.h"

namespace firebreak::inject {
namespace {

constexpr Kernel kernel{.ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry breakpoint(.param .u64 target, .param .u64 sink)
{
  brkpt;
  ret;
}
)",
                        .name = "breakpoint"};

}  // namespace

constinit const Kind breakpoint{
    .name = "breakpoint",
    .summary = "a kernel executes the breakpoint instruction and no debugger is there",
    .fault_class = fault::FaultClass::Sm,
    .expectation = {.faulter = CUDA_ERROR_LAUNCH_FAILED,
                    .co_client = CUDA_ERROR_LAUNCH_FAILED,
                    .xids = trap_xids,
                    .first_seen_by = fault::FaultSource::MpsLog},
    .ptx = kernel.ptx,
    .prepare = &prepare_kernel<kernel, &the_number<0>>,
};

}  // namespace firebreak::inject
