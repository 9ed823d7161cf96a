// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "inject/kernel_fault.h"
#include "inject/kinds.h"

namespace firebreak::inject {
namespace {

constexpr std::string_view ptx = R"(.version 7.0
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
)";

constexpr CUdeviceptr far_offset_bytes = CUdeviceptr{64} << 20;

Result<std::unique_ptr<Injection>> prepare(const cuda::Driver& driver, const cuda::ContextView& context,
                                           const Options&) {
  const auto current = context.make_current();
  if (!current) return propagate(current);
  KernelFault fault;
  fault.ptx = ptx;
  fault.kernel = "shared_out_of_bounds";
  fault.target = far_offset_bytes;
  fault.threads = 32;
  fault.shared_bytes = 1024;
  return prepare_kernel(driver, std::move(fault));
}

}  // namespace

constinit const Kind shared_out_of_bounds{
    .name = "shared-out-of-bounds",
    .summary = "a kernel loads from far beyond its shared memory",
    .fault_class = fault::FaultClass::Sm,
    .expectation = {.faulter = CUDA_ERROR_ILLEGAL_INSTRUCTION,
                    .co_client = CUDA_ERROR_ILLEGAL_INSTRUCTION,
                    .xids = sm_xids,
                    .first_seen_by = fault::FaultSource::Xid},
    .ptx = ptx,
    .prepare = &prepare,
};

}  // namespace firebreak::inject
