// SPDX-License-Identifier: Apache-2.0
#include "inject/engine/waiting_fault.h"
#include "inject/kinds.h"

namespace firebreak::inject {
namespace {

CUresult queue(const cuda::Driver& driver, CUstream stream, CUdeviceptr target, std::span<std::byte>) {
  return driver->cuStreamWaitValue32(stream, target, 5, CU_STREAM_WAIT_VALUE_GEQ);
}

}  // namespace

constinit const Kind wait_value_unmap{
    .name = "wait-value-unmap",
    .summary = "a stream waits for a value (PBDMA) in a page that is unmapped when its turn comes",
    .fault_class = fault::FaultClass::MmuNonReplayable,
    .expectation = {.faulter = CUDA_ERROR_LAUNCH_FAILED,
                    .co_client = CUDA_ERROR_LAUNCH_FAILED,
                    .xids = mmu_xids,
                    .first_seen_by = fault::FaultSource::UvmEvent,
                    .under_guard = UnderGuard::Contained},
    .ptx = {},
    .prepare = &prepare_waiting<&queue>,
};

}  // namespace firebreak::inject
