// SPDX-License-Identifier: Apache-2.0
#include "inject/kinds.h"
#include "inject/targets.h"

namespace firebreak::inject {
namespace {

// There are 16, and a wrong number of threads could hang the kernel instead.
constexpr CUdeviceptr barrier = 20;

constexpr Kernel kernel{.ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry barrier_misuse(.param .u64 target, .param .u64 sink)
{
  .reg .u64 %target;
  .reg .u32 %barrier;
  ld.param.u64 %target, [target];
  cvt.u32.u64 %barrier, %target;
  barrier.sync %barrier;
  ret;
}
)",
                        .name = "barrier_misuse",
                        .threads = 32};

}  // namespace

constinit const Kind barrier_misuse{
    .name = "barrier-misuse",
    .summary = "a kernel waits at a barrier whose number does not exist",
    .fault_class = fault::FaultClass::Sm,
    // An H100 says nothing and goes on; it may take the number modulo what it has.
    .expectation = {.faulter = CUDA_SUCCESS,
                    .co_client = CUDA_SUCCESS,
                    .xids = {},
                    .first_seen_by = std::nullopt},
    .ptx = kernel.ptx,
    .prepare = &prepare_kernel<kernel, &the_number<barrier>>,
};

}  // namespace firebreak::inject
