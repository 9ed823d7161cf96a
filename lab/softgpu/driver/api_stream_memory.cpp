// SPDX-License-Identifier: Apache-2.0
/// Entry points: stream memory operations.
#include <utility>

#include "softgpu/driver/entry.h"
#include "softgpu/driver/stream_memory.h"

using namespace firebreak::softgpu::driver;

namespace {

CUresult wait_value(CUstream stream, const ValueOperation& operation) {
  return with_stream(stream, [&](Process& process, Context& context, const std::shared_ptr<Stream>& target) {
    return submit_wait_value(process, context, target, operation);
  });
}

CUresult write_value(CUstream stream, const ValueOperation& operation) {
  return with_stream(stream, [&](Process& process, Context& context, const std::shared_ptr<Stream>& target) {
    return submit_write_value(process, context, target, operation);
  });
}

enum BatchOperation : int {
  WaitValue32 = 1,
  WriteValue32 = 2,
  FlushRemoteWrites = 3,
  WaitValue64 = 4,
  WriteValue64 = 5
};

/// The driver's CUstreamBatchMemOpParams: 48 bytes, the members that both kinds of operation share.
struct BatchEntry {
  int operation;
  CUdeviceptr address;
  std::uint64_t value;
  unsigned int flags;
  CUdeviceptr alias;
  std::uint64_t reserved;
};
static_assert(sizeof(BatchEntry) == 48);

CUresult run_entry(CUstream stream, const BatchEntry& entry) {
  const std::uint64_t value32 = entry.value & 0xffffffff;
  switch (entry.operation) {
    case WaitValue32:
      return wait_value(stream, {entry.address, value32, 4, entry.flags});
    case WriteValue32:
      return write_value(stream, {entry.address, value32, 4, entry.flags});
    case WaitValue64:
      return wait_value(stream, {entry.address, entry.value, 8, entry.flags});
    case WriteValue64:
      return write_value(stream, {entry.address, entry.value, 8, entry.flags});
    case FlushRemoteWrites:
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

}  // namespace

extern "C" {

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, std::uint32_t value,
                                unsigned int flags) {
  return wait_value(stream, {address, value, 4, flags});
}
CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, std::uint64_t value,
                                unsigned int flags) {
  return wait_value(stream, {address, value, 8, flags});
}
CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, std::uint32_t value,
                                 unsigned int flags) {
  return write_value(stream, {address, value, 4, flags});
}
CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, std::uint64_t value,
                                 unsigned int flags) {
  return write_value(stream, {address, value, 8, flags});
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, CUstreamBatchMemOpParams* entries,
                               unsigned int flags) {
  if (flags != 0 || (count != 0 && entries == nullptr) || count > 256) return CUDA_ERROR_INVALID_VALUE;
  const auto* batch = reinterpret_cast<const BatchEntry*>(entries);
  for (unsigned int index = 0; index < count; ++index) {
    if (const CUresult result = run_entry(stream, batch[index]); result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // extern "C"
