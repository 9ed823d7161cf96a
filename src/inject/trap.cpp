// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "inject/kernel_fault.h"
#include "inject/kinds.h"

namespace firebreak::inject {
namespace {

constexpr std::string_view ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry trap(.param .u64 target, .param .u64 sink)
{
  trap;
  ret;
}
)";

Result<std::unique_ptr<Injection>> prepare(const cuda::Driver& driver, const cuda::ContextView& context,
                                           const Options&) {
  const auto current = context.make_current();
  if (!current) return propagate(current);
  KernelFault fault;
  fault.ptx = ptx;
  fault.kernel = "trap";
  return prepare_kernel(driver, std::move(fault));
}

}  // namespace

constinit const Kind trap{
    .name = "trap",
    .summary = "a kernel executes the trap instruction, as a failed device-side check does",
    .fault_class = fault::FaultClass::Sm,
    .expectation = {.faulter = CUDA_ERROR_LAUNCH_FAILED,
                    .co_client = CUDA_ERROR_LAUNCH_FAILED,
                    .xids = trap_xids,
                    .first_seen_by = fault::FaultSource::Xid},
    .ptx = ptx,
    .prepare = &prepare,
};

}  // namespace firebreak::inject
