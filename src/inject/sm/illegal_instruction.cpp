// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "inject/accesses.h"
#include "inject/kinds.h"
#include "inject/sm/compiled_kernel.h"
#include "inject/targets.h"

namespace firebreak::inject {
namespace {

constexpr Kernel kernel{.ptx = R"(.version 7.0
.target sm_70
.address_size 64

.visible .entry illegal_instruction(.param .u64 target, .param .u64 sink)
{
  .reg .u64 %sink;
  .reg .u32 %value;
  ld.param.u64 %sink, [sink];
  mov.u32 %value, 7;
  st.u32 [%sink], %value;
  ret;
}
)",
                        .name = "illegal_instruction"};

/// No instruction of any generation is all ones.
constexpr std::byte no_instruction{0xff};

/// PTX has no word for a wrong instruction, so the compiled kernel is spoilt before it is loaded. Where no
/// binary can be had (the software GPU), a call into data: on an H100 that is a fetch fault of the MMU.
Prepared prepare(const cuda::Driver& driver, const cuda::ContextView& context, const Options& options) {
  const auto current = context.make_current();
  if (!current) return propagate(current);
  if (!can_compile(driver)) return prepare_kernel(context, options, call_target, &memory_full_of_ones);
  auto binary = compile(driver, kernel.ptx);
  if (!binary) return propagate(binary, kernel.name);
  const std::span<std::byte> code = code_of(*binary, kernel.name);
  if (code.empty())
    return fail(ErrorCode::Unsupported, "this driver's compiler makes binaries of a kind that is not known");
  std::ranges::fill(code, no_instruction);
  auto module = cuda::Module::load_binary(driver, *binary);
  if (!module) return propagate(module, kernel.name);
  return prepare_loaded(context, options, kernel, std::move(*module), &the_number<0>);
}

}  // namespace

constinit const Kind illegal_instruction{
    .name = "illegal-instruction",
    .summary = "a kernel executes bytes that are no instruction",
    .fault_class = fault::FaultClass::Sm,
    .expectation = {.faulter = CUDA_ERROR_ILLEGAL_INSTRUCTION,
                    .co_client = CUDA_ERROR_ILLEGAL_INSTRUCTION,
                    .sometimes = CUDA_ERROR_LAUNCH_FAILED,
                    .xids = sm_xids,
                    .first_seen_by = fault::FaultSource::Xid},
    .ptx = call_target.ptx,
    .prepare = &prepare,
};

}  // namespace firebreak::inject
