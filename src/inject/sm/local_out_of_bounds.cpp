// SPDX-License-Identifier: Apache-2.0
#include "inject/kinds.h"
#include "inject/targets.h"

namespace firebreak::inject {
namespace {

constexpr CUdeviceptr far_offset_bytes = CUdeviceptr{64} << 20;

constexpr Kernel kernel{.ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry local_out_of_bounds(.param .u64 target, .param .u64 sink)
{
  .local .align 4 .b8 frame[64];
  .reg .u64 %address, %offset, %sink;
  .reg .u32 %value;
  ld.param.u64 %offset, [target];
  ld.param.u64 %sink, [sink];
  mov.u64 %address, frame;
  add.u64 %address, %address, %offset;
  ld.local.u32 %value, [%address];
  st.u32 [%sink], %value;
  ret;
}
)",
                        .name = "local_out_of_bounds"};

}  // namespace

constinit const Kind local_out_of_bounds{
    .name = "local-out-of-bounds",
    .summary = "a kernel loads from far beyond its local memory",
    .fault_class = fault::FaultClass::Sm,
    .expectation = {.faulter = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .co_client = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .sometimes = CUDA_ERROR_LAUNCH_FAILED,
                    .xids = sm_xids,
                    .first_seen_by = fault::FaultSource::Xid},
    .ptx = kernel.ptx,
    .prepare = &prepare_kernel<kernel, &the_number<far_offset_bytes>>,
};

}  // namespace firebreak::inject
