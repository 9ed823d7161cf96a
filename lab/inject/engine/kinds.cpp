// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "inject/engine/waiting_fault.h"
#include "inject/kinds.h"

namespace firebreak::inject {
namespace {

CUresult copy_from_target(const cuda::Driver& driver, CUstream stream, CUdeviceptr target,
                          std::span<std::byte> staging) {
  return driver->cuMemcpyDtoHAsync(staging.data(), target, staging.size(), stream);
}

/// Copies from the host: a kernel of the driver's may copy within the GPU, and faults as a kernel does.
CUresult copy_to_target(const cuda::Driver& driver, CUstream stream, CUdeviceptr target,
                        std::span<std::byte> staging) {
  return driver->cuMemcpyHtoDAsync(target, staging.data(), staging.size(), stream);
}

CUresult copy_rows_to_target(const cuda::Driver& driver, CUstream stream, CUdeviceptr target,
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

CUresult write_value(const cuda::Driver& driver, CUstream stream, CUdeviceptr target, std::span<std::byte>) {
  return driver->cuStreamWriteValue32(stream, target, 5, CU_STREAM_WRITE_VALUE_DEFAULT);
}

CUresult wait_for_value(const cuda::Driver& driver, CUstream stream, CUdeviceptr target,
                        std::span<std::byte>) {
  return driver->cuStreamWaitValue32(stream, target, 5, CU_STREAM_WAIT_VALUE_GEQ);
}

template <QueueWork queue_work>
constexpr Kind engine_kind(std::string_view name, std::string_view summary, CUresult co_client) {
  return {.name = name,
          .summary = summary,
          .fault_class = fault::FaultClass::MmuNonReplayable,
          .expectation = {.faulter = CUDA_ERROR_LAUNCH_FAILED,
                          .co_client = co_client,
                          .xids = mmu_xids,
                          .first_seen_by = fault::FaultSource::UvmEvent,
                          .under_guard = UnderGuard::Contained},
          .ptx = {},
          .prepare = &prepare_waiting<queue_work>};
}

// A client's copy engine channels are its own: co-clients that ran kernels lived.
constexpr CUresult they_live = CUDA_SUCCESS;

constexpr std::array kinds{
    engine_kind<&copy_from_target>(
        "copy-source-unmap", "a copy's source is unmapped while the copy waits for its turn", they_live),
    engine_kind<&copy_to_target>(
        "copy-engine-unmap", "a copy's destination is unmapped while the copy waits for its turn", they_live),
    engine_kind<&copy_rows_to_target>(
        "copy-2d-unmap", "a 2-D copy's destination is unmapped while the copy waits for its turn", they_live),
    engine_kind<&write_value>("write-value-unmap",
                              "a stream's memory write (PBDMA) finds its page unmapped when its turn comes",
                              CUDA_ERROR_LAUNCH_FAILED),
    engine_kind<&wait_for_value>(
        "wait-value-unmap",
        "a stream waits for a value (PBDMA) in a page that is unmapped when its turn comes",
        CUDA_ERROR_LAUNCH_FAILED),
};

}  // namespace

std::span<const Kind> engine_kinds() { return kinds; }

}  // namespace firebreak::inject
