// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "cuda/copy.h"
#include "inject/kernel_fault.h"
#include "inject/kinds.h"
#include "inject/mapped_target.h"

namespace firebreak::inject {
namespace {

constexpr std::string_view ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry use_after_unmap(.param .u64 target, .param .u64 sink)
{
  .reg .u64 %address;
  .reg .u32 %value;
  ld.param.u64 %address, [target];
  mov.u32 %value, 7;
  st.volatile.u32 [%address], %value;
  ret;
}
)";

Result<std::unique_ptr<Injection>> prepare(const cuda::Driver& driver, const cuda::ContextView& context,
                                           const Options&) {
  const auto current = context.make_current();
  if (!current) return propagate(current);
  auto target = map_target(context, cuda::Access::ReadWrite);
  if (!target) return propagate(target);
  // Used first, so that the GPU's own caches have met the address.
  const auto used = cuda::fill_words(driver, (*target)->address(), 1, 32);
  if (!used) return propagate(used);
  const auto idle = context.synchronize();
  if (!idle) return propagate(idle);
  (*target)->mapping.reset();
  KernelFault fault;
  fault.ptx = ptx;
  fault.kernel = "use_after_unmap";
  fault.target = (*target)->address();
  fault.keep_alive = *target;
  return prepare_kernel(driver, std::move(fault));
}

}  // namespace

constinit const Kind use_after_unmap{
    .name = "use-after-unmap",
    .summary = "a kernel stores to memory that was in use and then unmapped",
    .fault_class = fault::FaultClass::MmuReplayable,
    .expectation = {.faulter = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .co_client = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .xids = mmu_xids,
                    .first_seen_by = fault::FaultSource::UvmEvent},
    .ptx = ptx,
    .prepare = &prepare,
};

}  // namespace firebreak::inject
