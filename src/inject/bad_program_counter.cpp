// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "inject/kernel_fault.h"
#include "inject/kinds.h"

namespace firebreak::inject {
namespace {

constexpr std::string_view ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry bad_program_counter(.param .u64 target, .param .u64 sink)
{
  .reg .u64 %function, %sink;
  takes_address: .callprototype _ (.param .b64 argument);
  ld.param.u64 %function, [target];
  ld.param.u64 %sink, [sink];
  {
    .param .b64 argument;
    st.param.b64 [argument], %sink;
    call %function, (argument), takes_address;
  }
  ret;
}
)";

// Inside no code segment of any driver seen so far.
constexpr CUdeviceptr no_code = 0x1234'5670;

Result<std::unique_ptr<Injection>> prepare(const cuda::Driver& driver, const cuda::ContextView& context,
                                           const Options&) {
  const auto current = context.make_current();
  if (!current) return propagate(current);
  KernelFault fault;
  fault.ptx = ptx;
  fault.kernel = "bad_program_counter";
  fault.target = no_code;
  return prepare_kernel(driver, std::move(fault));
}

}  // namespace

constinit const Kind bad_program_counter{
    .name = "bad-program-counter",
    .summary = "a kernel calls a function pointer that was made from a number",
    .fault_class = fault::FaultClass::MmuReplayable,
    .expectation = {.faulter = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .co_client = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .xids = mmu_xids,
                    .first_seen_by = fault::FaultSource::UvmEvent},
    .ptx = ptx,
    .prepare = &prepare,
};

}  // namespace firebreak::inject
