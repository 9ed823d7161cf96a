// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"
#include "inject/kinds.h"
#include "inject/waiting_fault.h"

namespace firebreak::inject {
namespace {

/// One half of the target onto the other.
CUresult queue_copy(const cuda::Driver& driver, CUstream stream, CUdeviceptr target) {
  return driver->cuMemcpyDtoDAsync(target, target + mib / 2, mib / 2, stream);
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
    .expectation = {.faulter = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .co_client = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .xids = mmu_xids,
                    .first_seen_by = fault::FaultSource::UvmEvent},
    .ptx = {},
    .prepare = &prepare,
};

}  // namespace firebreak::inject
