// SPDX-License-Identifier: Apache-2.0
#include "inject/engine/waiting_fault.h"
#include "inject/kinds.h"

namespace firebreak::inject {
namespace {

/// From the host: copies within the GPU may be done by a kernel of the driver's, which faults as a kernel
/// does.
CUresult queue(const cuda::Driver& driver, CUstream stream, CUdeviceptr target,
               std::span<std::byte> staging) {
  return driver->cuMemcpyHtoDAsync(target, staging.data(), staging.size(), stream);
}

}  // namespace

constinit const Kind copy_engine_unmap{
    .name = "copy-engine-unmap",
    .summary = "a copy's destination is unmapped while the copy waits for its turn",
    .fault_class = fault::FaultClass::MmuNonReplayable,
    // A client's copy engine channels are its own: co-clients that ran kernels lived.
    .expectation = {.faulter = CUDA_ERROR_LAUNCH_FAILED,
                    .co_client = CUDA_SUCCESS,
                    .xids = mmu_xids,
                    .first_seen_by = fault::FaultSource::UvmEvent,
                    .under_guard = UnderGuard::Contained},
    .ptx = {},
    .prepare = &prepare_waiting<&queue>,
};

}  // namespace firebreak::inject
