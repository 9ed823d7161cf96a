// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "inject/kernel_fault.h"
#include "inject/kinds.h"
#include "inject/mapped_target.h"

namespace firebreak::inject {
namespace {

constexpr std::string_view ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry read_only_atomic(.param .u64 target, .param .u64 sink)
{
  .reg .u64 %address;
  ld.param.u64 %address, [target];
  red.add.u32 [%address], 1;
  ret;
}
)";

Result<std::unique_ptr<Injection>> prepare(const cuda::Driver& driver, const cuda::ContextView& context,
                                           const Options&) {
  const auto current = context.make_current();
  if (!current) return propagate(current);
  auto target = map_target(context, cuda::Access::ReadOnly);
  if (!target) return propagate(target);
  KernelFault fault;
  fault.ptx = ptx;
  fault.kernel = "read_only_atomic";
  fault.target = (*target)->address();
  fault.keep_alive = *target;
  return prepare_kernel(driver, std::move(fault));
}

}  // namespace

constinit const Kind read_only_atomic{
    .name = "read-only-atomic",
    .summary = "a kernel adds atomically to memory that is mapped read-only",
    .fault_class = fault::FaultClass::MmuReplayable,
    .expectation = {.faulter = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .co_client = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .xids = mmu_xids,
                    .first_seen_by = fault::FaultSource::UvmEvent},
    .ptx = ptx,
    .prepare = &prepare,
};

}  // namespace firebreak::inject
