// SPDX-License-Identifier: Apache-2.0
#include "inject/engine/waiting_fault.h"
#include "inject/kinds.h"

namespace firebreak::inject {
namespace {

CUresult queue(const cuda::Driver& driver, CUstream stream, CUdeviceptr target,
               std::span<std::byte> staging) {
  return driver->cuMemsetD8Async(target, 5, staging.size(), stream);
}

}  // namespace

constinit const Kind memset_unmap{
    .name = "memset-unmap",
    .summary = "a fill's memory is unmapped while the fill waits for its turn",
    // The driver fills with a kernel of its own, which faults as a kernel does.
    .fault_class = fault::FaultClass::MmuReplayable,
    .expectation = {.faulter = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .co_client = CUDA_ERROR_ILLEGAL_ADDRESS,
                    .xids = mmu_xids,
                    .first_seen_by = fault::FaultSource::UvmEvent,
                    .under_guard = UnderGuard::Contained},
    .ptx = {},
    .prepare = &prepare_waiting<&queue>,
};

}  // namespace firebreak::inject
