// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "inject/kinds.h"
#include "inject/termination/ending_process.h"

namespace firebreak::inject {
namespace {

template <const WorkShape& shape, Ending ending>
constexpr Kind termination_kind(std::string_view name, std::string_view summary) {
  return {.name = name,
          .summary = summary,
          .fault_class = fault::FaultClass::Termination,
          .expectation = {.faulter = CUDA_SUCCESS,
                          .co_client = CUDA_ERROR_ILLEGAL_ADDRESS,
                          .xids = mmu_xids,
                          .first_seen_by = fault::FaultSource::MpsLog},
          .ptx = working_kernel_ptx,
          .prepare = &prepare_ending<shape, ending>};
}

constexpr std::array kinds{
    termination_kind<one_block, Ending::Kill>("sigkill", "the process is killed while its kernel runs"),
    termination_kind<one_block, Ending::Terminate>("sigterm",
                                                   "the process gets SIGTERM while its kernel runs"),
    termination_kind<one_block, Ending::SegmentationFault>(
        "sigsegv", "the process crashes on the CPU while its kernel runs"),
    termination_kind<one_block, Ending::Exit>("exit", "the process calls exit() while its kernel runs"),
    // The process lives on; what it had on the GPU does not.
    termination_kind<one_block, Ending::Exec>("exec",
                                              "the process becomes another program while its kernel runs"),
    termination_kind<short_kernel, Ending::Kill>(
        "sigkill-short-kernel", "the process is killed while a kernel runs that would end by itself soon"),
    termination_kind<waiting_kernel, Ending::Kill>(
        "sigkill-endless", "the process is killed while a kernel runs that waits for a word of the host"),
    termination_kind<full_gpu, Ending::Kill>("sigkill-full-gpu",
                                             "the process is killed while its kernel fills the GPU"),
};

}  // namespace

std::span<const Kind> termination_kinds() { return kinds; }

}  // namespace firebreak::inject
