// SPDX-License-Identifier: Apache-2.0
#include "inject/kinds.h"
#include "inject/waiting_fault.h"

namespace firebreak::inject {
namespace {

CUresult queue_write(const cuda::Driver& driver, CUstream stream, CUdeviceptr target,
                     std::span<const std::byte>) {
  return driver->cuStreamWriteValue32(stream, target, 5, CU_STREAM_WRITE_VALUE_DEFAULT);
}

Result<std::unique_ptr<Injection>> prepare(const cuda::Driver& driver, const cuda::ContextView& context,
                                           const Options&) {
  return prepare_waiting(driver, context, &queue_write);
}

}  // namespace

constinit const Kind write_value_unmap{
    .name = "write-value-unmap",
    .summary = "a stream's memory write (PBDMA) finds its page unmapped when its turn comes",
    .fault_class = fault::FaultClass::MmuNonReplayable,
    .expectation = {.faulter = CUDA_ERROR_LAUNCH_FAILED,
                    .co_client = CUDA_ERROR_LAUNCH_FAILED,
                    .xids = mmu_xids,
                    .first_seen_by = fault::FaultSource::UvmEvent},
    .ptx = {},
    .prepare = &prepare,
};

}  // namespace firebreak::inject
