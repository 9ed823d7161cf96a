// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <utility>

#include "inject/accesses.h"
#include "inject/kinds.h"
#include "inject/sm/compiled_kernel.h"
#include "inject/sm/kernels.h"
#include "inject/targets.h"

namespace firebreak::inject {
namespace {

// A GPU has 16 barriers, and a wrong number of threads could hang the kernel instead.
constexpr CUdeviceptr no_barrier = 20;
constexpr CUdeviceptr far_offset_bytes = CUdeviceptr{64} << 20;
constexpr CUdeviceptr not_canonical = 0xdead'7000'dead'0000;
// A kibibyte each: more than any stack limit allows.
constexpr CUdeviceptr levels = CUdeviceptr{1} << 20;

/// All ones are no instruction of any generation.
constexpr std::byte no_instruction{0xff};

/// PTX has no word for a wrong instruction, so the compiled kernel is spoilt before it is loaded. Where no
/// binary can be had (the software GPU), a call into data: on an H100 that is a fetch fault of the MMU.
Prepared prepare_illegal_instruction(const cuda::Driver& driver, const cuda::ContextView& context,
                                     const Options& options) {
  const Kernel& kernel = illegal_instruction_kernel;
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

/// The SM's own word, with an Xid that says what it was.
constexpr Expectation told(CUresult error) {
  return {.faulter = error,
          .co_client = error,
          .sometimes = CUDA_ERROR_LAUNCH_FAILED,
          .xids = sm_xids,
          .first_seen_by = fault::FaultSource::Xid};
}

/// These have no Xid of their own: the MPS server's log comes before that of the channel.
constexpr Expectation trapped{.faulter = CUDA_ERROR_LAUNCH_FAILED,
                              .co_client = CUDA_ERROR_LAUNCH_FAILED,
                              .xids = trap_xids,
                              .first_seen_by = fault::FaultSource::MpsLog};
/// The same as told() and trapped, for kinds that nobody has looked at beside others on a stock domain.
constexpr Expectation alone(Expectation expected) {
  expected.measured = false;
  return expected;
}
constexpr Expectation asserted{.faulter = CUDA_ERROR_ASSERT,
                               .co_client = CUDA_ERROR_ASSERT,
                               .xids = trap_xids,
                               .first_seen_by = fault::FaultSource::MpsLog};
constexpr Expectation let_pass{.xids = {}, .first_seen_by = std::nullopt};

template <const Kernel& kernel, FindTarget find_target>
constexpr Kind sm_kind(std::string_view name, std::string_view summary, const Expectation& expected) {
  return {.name = name,
          .summary = summary,
          .fault_class = fault::FaultClass::Sm,
          .expectation = expected,
          .ptx = kernel.ptx,
          .prepare = &prepare_kernel<kernel, find_target>};
}

constexpr std::array kinds{
    sm_kind<load_word, &odd_address>("misaligned-load", "a kernel loads four bytes from an odd address",
                                     told(CUDA_ERROR_MISALIGNED_ADDRESS)),
    sm_kind<misaligned_store_kernel, &odd_address>("misaligned-store",
                                                   "a kernel stores four bytes to an odd address",
                                                   told(CUDA_ERROR_MISALIGNED_ADDRESS)),
    sm_kind<add_atomically, &odd_address>("misaligned-atomic",
                                          "a kernel adds atomically to four bytes at an odd address",
                                          told(CUDA_ERROR_MISALIGNED_ADDRESS)),
    sm_kind<add_atomically_64, &odd_address>("misaligned-atomic-64",
                                             "a kernel adds atomically to eight bytes at an odd address",
                                             alone(told(CUDA_ERROR_MISALIGNED_ADDRESS))),
    sm_kind<misaligned_copy_kernel, &odd_address>(
        "misaligned-async-copy", "a kernel copies asynchronously (cp.async) from an odd address",
        alone(told(CUDA_ERROR_MISALIGNED_ADDRESS))),
    sm_kind<misaligned_mbarrier_kernel, &the_number<4>>("misaligned-mbarrier",
                                                        "a kernel makes an mbarrier that is not aligned",
                                                        alone(told(CUDA_ERROR_MISALIGNED_ADDRESS))),
    sm_kind<shared_out_of_bounds_kernel, &the_number<far_offset_bytes>>(
        "shared-out-of-bounds", "a kernel loads from far beyond its shared memory",
        told(CUDA_ERROR_ILLEGAL_INSTRUCTION)),
    sm_kind<local_out_of_bounds_kernel, &the_number<far_offset_bytes>>(
        "local-out-of-bounds", "a kernel loads from far beyond its local memory",
        told(CUDA_ERROR_ILLEGAL_ADDRESS)),
    sm_kind<load_word, &the_number<not_canonical>>(
        "non-canonical-address", "a kernel loads from an address with more bits than the GPU has",
        told(CUDA_ERROR_ILLEGAL_ADDRESS)),
    sm_kind<trap_kernel, &the_number<0>>(
        "trap", "a kernel executes the trap instruction, as a failed device-side check does", trapped),
    sm_kind<assertion_kernel, &the_number<0>>("device-assert", "an assertion of a kernel fails",
                                              alone(asserted)),
    sm_kind<breakpoint_kernel, &the_number<0>>(
        "breakpoint", "a kernel executes the breakpoint instruction and no debugger is there", trapped),
    Kind{.name = "illegal-instruction",
         .summary = "a kernel executes bytes that are no instruction",
         .fault_class = fault::FaultClass::Sm,
         .expectation = told(CUDA_ERROR_ILLEGAL_INSTRUCTION),
         .ptx = call_target.ptx,
         .prepare = &prepare_illegal_instruction},
    sm_kind<stack_overflow_kernel, &the_number<levels>>(
        "stack-overflow", "a kernel recurses beyond its stack", told(CUDA_ERROR_ILLEGAL_ADDRESS)),
    // An H100 says nothing and goes on; it may take the number modulo what it has.
    sm_kind<barrier_misuse_kernel, &the_number<no_barrier>>(
        "barrier-misuse", "a kernel waits at a barrier whose number does not exist", let_pass),
};

}  // namespace

std::span<const Kind> sm_kinds() { return kinds; }

}  // namespace firebreak::inject
