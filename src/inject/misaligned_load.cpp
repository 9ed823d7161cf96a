// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "inject/kernel_fault.h"
#include "inject/kinds.h"

namespace firebreak::inject {
namespace {

constexpr std::string_view ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry misaligned_load(.param .u64 target, .param .u64 sink)
{
  .reg .u64 %address, %sink;
  .reg .u32 %value;
  ld.param.u64 %sink, [sink];
  add.u64 %address, %sink, 1;
  ld.volatile.u32 %value, [%address];
  st.u32 [%sink], %value;
  ret;
}
)";

Result<std::unique_ptr<Injection>> prepare(const cuda::Driver& driver, const cuda::ContextView& context,
                                           const Options&) {
  const auto current = context.make_current();
  if (!current) return propagate(current);
  KernelFault fault;
  fault.ptx = ptx;
  fault.kernel = "misaligned_load";
  return prepare_kernel(driver, std::move(fault));
}

}  // namespace

constinit const Kind misaligned_load{
    .name = "misaligned-load",
    .summary = "a kernel loads four bytes from an odd address",
    .fault_class = fault::FaultClass::Sm,
    .expectation = {.faulter = CUDA_ERROR_MISALIGNED_ADDRESS,
                    .co_client = CUDA_ERROR_MISALIGNED_ADDRESS,
                    .xids = sm_xids,
                    .first_seen_by = fault::FaultSource::Xid},
    .ptx = ptx,
    .prepare = &prepare,
};

}  // namespace firebreak::inject
