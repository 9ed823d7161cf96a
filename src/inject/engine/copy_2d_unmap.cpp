// SPDX-License-Identifier: Apache-2.0
#include "inject/engine/waiting_fault.h"
#include "inject/kinds.h"

namespace firebreak::inject {
namespace {

CUresult queue(const cuda::Driver& driver, CUstream stream, CUdeviceptr target,
               std::span<std::byte> staging) {
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = staging.data();
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = target;
  // Rows with gaps between them, or it would be one plain copy.
  copy.srcPitch = copy.dstPitch = 4096;
  copy.WidthInBytes = 4096 - 256;
  copy.Height = staging.size() / 4096;
  return driver->cuMemcpy2DAsync(&copy, stream);
}

}  // namespace

constinit const Kind copy_2d_unmap{
    .name = "copy-2d-unmap",
    .summary = "a 2-D copy's destination is unmapped while the copy waits for its turn",
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
