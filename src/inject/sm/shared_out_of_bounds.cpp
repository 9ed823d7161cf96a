// SPDX-License-Identifier: Apache-2.0
#include "inject/kinds.h"
#include "inject/targets.h"

namespace firebreak::inject {
namespace {

constexpr CUdeviceptr far_offset_bytes = CUdeviceptr{64} << 20;

constexpr Kernel kernel{.ptx = R"(.version 7.0
.target sm_70
.address_size 64

.extern .shared .align 4 .b8 window[];

.visible .entry shared_out_of_bounds(.param .u64 target, .param .u64 sink)
{
  .reg .u64 %address, %offset, %sink;
  .reg .u32 %value;
  ld.param.u64 %offset, [target];
  ld.param.u64 %sink, [sink];
  mov.u64 %address, window;
  add.u64 %address, %address, %offset;
  ld.volatile.shared.u32 %value, [%address];
  st.u32 [%sink], %value;
  ret;
}
)",
                        .name = "shared_out_of_bounds",
                        .threads = 32,
                        .shared_bytes = 1024};

}  // namespace

constinit const Kind shared_out_of_bounds{
    .name = "shared-out-of-bounds",
    .summary = "a kernel loads from far beyond its shared memory",
    .fault_class = fault::FaultClass::Sm,
    .expectation = {.faulter = CUDA_ERROR_ILLEGAL_INSTRUCTION,
                    .co_client = CUDA_ERROR_ILLEGAL_INSTRUCTION,
                    .sometimes = CUDA_ERROR_LAUNCH_FAILED,
                    .xids = sm_xids,
                    .first_seen_by = fault::FaultSource::Xid},
    .ptx = kernel.ptx,
    .prepare = &prepare_kernel<kernel, &the_number<far_offset_bytes>>,
};

}  // namespace firebreak::inject
