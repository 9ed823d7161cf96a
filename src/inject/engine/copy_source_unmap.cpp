// SPDX-License-Identifier: Apache-2.0
#include "inject/engine/waiting_fault.h"
#include "inject/kinds.h"

namespace firebreak::inject {
namespace {

CUresult queue(const cuda::Driver& driver, CUstream stream, CUdeviceptr target,
               std::span<std::byte> staging) {
  return driver->cuMemcpyDtoHAsync(staging.data(), target, staging.size(), stream);
}

}  // namespace

constinit const Kind copy_source_unmap{
    .name = "copy-source-unmap",
    .summary = "a copy's source is unmapped while the copy waits for its turn",
    .fault_class = fault::FaultClass::MmuNonReplayable,
    .expectation = {.faulter = CUDA_ERROR_LAUNCH_FAILED,
                    .co_client = CUDA_SUCCESS,
                    .xids = mmu_xids,
                    .first_seen_by = fault::FaultSource::UvmEvent,
                    .under_guard = UnderGuard::Contained},
    .ptx = {},
    .prepare = &prepare_waiting<&queue>,
};

}  // namespace firebreak::inject
