// SPDX-License-Identifier: Apache-2.0
#include "inject/kinds.h"
#include "inject/targets.h"

namespace firebreak::inject {
namespace {

// A bank has 64 KiB.
constexpr CUdeviceptr far_offset_bytes = CUdeviceptr{64} << 20;

constexpr Kernel kernel{.ptx = R"(.version 7.0
.target sm_70
.address_size 64

.const .align 4 .b32 bank[16];

.visible .entry constant_beyond_window(.param .u64 target, .param .u64 sink)
{
  .reg .u64 %address, %offset, %sink;
  .reg .u32 %value;
  ld.param.u64 %offset, [target];
  ld.param.u64 %sink, [sink];
  mov.u64 %address, bank;
  add.u64 %address, %address, %offset;
  ld.const.u32 %value, [%address];
  st.u32 [%sink], %value;
  ret;
}
)",
                        .name = "constant_beyond_window"};

}  // namespace

constinit const Kind constant_beyond_window{
    .name = "constant-beyond-window",
    .summary = "a kernel loads from far beyond its bank of constants",
    .fault_class = fault::FaultClass::MmuReplayable,
    // An H100 says nothing and goes on.
    .expectation = {.faulter = CUDA_SUCCESS,
                    .co_client = CUDA_SUCCESS,
                    .xids = {},
                    .first_seen_by = std::nullopt},
    .ptx = kernel.ptx,
    .prepare = &prepare_kernel<kernel, &the_number<far_offset_bytes>>,
};

}  // namespace firebreak::inject
