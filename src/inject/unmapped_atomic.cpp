// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "inject/kernel_fault.h"
#include "inject/kinds.h"

namespace firebreak::inject {
namespace {

constexpr std::string_view ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry unmapped_atomic(.param .u64 target, .param .u64 sink)
{
  .reg .u64 %address;
  ld.param.u64 %address, [target];
  red.add.u32 [%address], 1;
  ret;
}
)";

Result<std::unique_ptr<Injection>> prepare(const cuda::Driver& driver, const cuda::ContextView& context,
                                           const Options& options) {
  const auto current = context.make_current();
  if (!current) return propagate(current);
  KernelFault fault;
  fault.ptx = ptx;
  fault.kernel = "unmapped_atomic";
  fault.target = options.stray_address.value_or(default_stray_address);
  return prepare_kernel(driver, std::move(fault));
}

}  // namespace

constinit const Kind unmapped_atomic{
    .name = "unmapped-atomic",
    .summary = "a kernel adds atomically where nothing is mapped",
    .fault_class = fault::FaultClass::MmuReplayable,
    .expectation = {.faulter = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .co_client = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .xids = mmu_xids,
                    .first_seen_by = fault::FaultSource::UvmEvent},
    .ptx = ptx,
    .prepare = &prepare,
};

}  // namespace firebreak::inject
