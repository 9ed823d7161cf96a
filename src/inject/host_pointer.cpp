// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "inject/kernel_fault.h"
#include "inject/kinds.h"

namespace firebreak::inject {
namespace {

constexpr std::string_view ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry host_pointer(.param .u64 target, .param .u64 sink)
{
  .reg .u64 %address, %sink;
  .reg .u32 %value;
  ld.param.u64 %address, [target];
  ld.param.u64 %sink, [sink];
  ld.volatile.u32 %value, [%address];
  st.u32 [%sink], %value;
  ret;
}
)";

Result<std::unique_ptr<Injection>> prepare(const cuda::Driver& driver, const cuda::ContextView& context,
                                           const Options&) {
  const auto current = context.make_current();
  if (!current) return propagate(current);
  const auto device = context.device();
  if (!device) return propagate(device);
  const auto reaches_host = device->attribute(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS);
  if (!reaches_host) return propagate(reaches_host);
  if (*reaches_host != 0) {
    return fail(ErrorCode::Unsupported,
                "host-pointer is no fault here: this GPU reaches ordinary host memory");
  }
  const auto memory = std::make_shared<const std::array<char, 4096>>();
  KernelFault fault;
  fault.ptx = ptx;
  fault.kernel = "host_pointer";
  fault.target = reinterpret_cast<std::uintptr_t>(memory->data());
  fault.keep_alive = memory;
  return prepare_kernel(driver, std::move(fault));
}

}  // namespace

constinit const Kind host_pointer{
    .name = "host-pointer",
    .summary = "a kernel loads through a pointer to ordinary host memory",
    .fault_class = fault::FaultClass::MmuReplayable,
    .expectation = {.faulter = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .co_client = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .xids = mmu_xids,
                    .first_seen_by = fault::FaultSource::UvmEvent},
    .ptx = ptx,
    .prepare = &prepare,
};

}  // namespace firebreak::inject
