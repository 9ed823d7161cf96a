// SPDX-License-Identifier: Apache-2.0
#include "inject/kinds.h"
#include "inject/waiting_fault.h"

namespace firebreak::inject {
namespace {

/// From the host: copies within the GPU may be done by a kernel of the driver's, which faults as a kernel
/// does.
CUresult queue_copy(const cuda::Driver& driver, CUstream stream, CUdeviceptr target,
                    std::span<const std::byte> staging) {
  return driver->cuMemcpyHtoDAsync(target, staging.data(), staging.size(), stream);
}

Result<std::unique_ptr<Injection>> prepare(const cuda::Driver& driver, const cuda::ContextView& context,
                                           const Options&) {
  return prepare_waiting(driver, context, &queue_copy);
}

}  // namespace

constinit const Kind copy_engine_unmap{
    .name = "copy-engine-unmap",
    .summary = "a copy's memory is unmapped while the copy waits for its turn",
    .fault_class = fault::FaultClass::MmuNonReplayable,
    // A client's copy engine channels are its own: co-clients that ran kernels lived.
    .expectation = {.faulter = CUDA_ERROR_LAUNCH_FAILED,
                    .co_client = CUDA_SUCCESS,
                    .xids = mmu_xids,
                    .first_seen_by = fault::FaultSource::UvmEvent},
    .ptx = {},
    .prepare = &prepare,
};

}  // namespace firebreak::inject
