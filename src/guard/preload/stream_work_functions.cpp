// SPDX-License-Identifier: Apache-2.0
/// What works in stream order and is neither launch, copy nor fill, in the driver's place.
#include "guard/preload/counting.h"
#include "guard/preload/work_functions.h"

using firebreak::guard::counted;
using firebreak::guard::counted_per_thread;

CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, std::uint32_t value, unsigned int flags) {
  return counted<"cuStreamWaitValue32">(stream, stream, address, value, flags);
}

CUresult cuStreamWaitValue32_ptsz(CUstream stream, CUdeviceptr address, std::uint32_t value,
                                  unsigned int flags) {
  return counted_per_thread<"cuStreamWaitValue32_ptsz">(stream, stream, address, value, flags);
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, std::uint32_t value,
                                unsigned int flags) {
  return counted<"cuStreamWaitValue32_v2">(stream, stream, address, value, flags);
}

CUresult cuStreamWaitValue32_v2_ptsz(CUstream stream, CUdeviceptr address, std::uint32_t value,
                                     unsigned int flags) {
  return counted_per_thread<"cuStreamWaitValue32_v2_ptsz">(stream, stream, address, value, flags);
}

CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr address, std::uint64_t value, unsigned int flags) {
  return counted<"cuStreamWaitValue64">(stream, stream, address, value, flags);
}

CUresult cuStreamWaitValue64_ptsz(CUstream stream, CUdeviceptr address, std::uint64_t value,
                                  unsigned int flags) {
  return counted_per_thread<"cuStreamWaitValue64_ptsz">(stream, stream, address, value, flags);
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, std::uint64_t value,
                                unsigned int flags) {
  return counted<"cuStreamWaitValue64_v2">(stream, stream, address, value, flags);
}

CUresult cuStreamWaitValue64_v2_ptsz(CUstream stream, CUdeviceptr address, std::uint64_t value,
                                     unsigned int flags) {
  return counted_per_thread<"cuStreamWaitValue64_v2_ptsz">(stream, stream, address, value, flags);
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, std::uint32_t value, unsigned int flags) {
  return counted<"cuStreamWriteValue32">(stream, stream, address, value, flags);
}

CUresult cuStreamWriteValue32_ptsz(CUstream stream, CUdeviceptr address, std::uint32_t value,
                                   unsigned int flags) {
  return counted_per_thread<"cuStreamWriteValue32_ptsz">(stream, stream, address, value, flags);
}

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, std::uint32_t value,
                                 unsigned int flags) {
  return counted<"cuStreamWriteValue32_v2">(stream, stream, address, value, flags);
}

CUresult cuStreamWriteValue32_v2_ptsz(CUstream stream, CUdeviceptr address, std::uint32_t value,
                                      unsigned int flags) {
  return counted_per_thread<"cuStreamWriteValue32_v2_ptsz">(stream, stream, address, value, flags);
}

CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address, std::uint64_t value, unsigned int flags) {
  return counted<"cuStreamWriteValue64">(stream, stream, address, value, flags);
}

CUresult cuStreamWriteValue64_ptsz(CUstream stream, CUdeviceptr address, std::uint64_t value,
                                   unsigned int flags) {
  return counted_per_thread<"cuStreamWriteValue64_ptsz">(stream, stream, address, value, flags);
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, std::uint64_t value,
                                 unsigned int flags) {
  return counted<"cuStreamWriteValue64_v2">(stream, stream, address, value, flags);
}

CUresult cuStreamWriteValue64_v2_ptsz(CUstream stream, CUdeviceptr address, std::uint64_t value,
                                      unsigned int flags) {
  return counted_per_thread<"cuStreamWriteValue64_v2_ptsz">(stream, stream, address, value, flags);
}

CUresult cuStreamBatchMemOp(CUstream stream, unsigned int count, void* operations, unsigned int flags) {
  return counted<"cuStreamBatchMemOp">(stream, stream, count, operations, flags);
}

CUresult cuStreamBatchMemOp_ptsz(CUstream stream, unsigned int count, void* operations, unsigned int flags) {
  return counted_per_thread<"cuStreamBatchMemOp_ptsz">(stream, stream, count, operations, flags);
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, void* operations, unsigned int flags) {
  return counted<"cuStreamBatchMemOp_v2">(stream, stream, count, operations, flags);
}

CUresult cuStreamBatchMemOp_v2_ptsz(CUstream stream, unsigned int count, void* operations,
                                    unsigned int flags) {
  return counted_per_thread<"cuStreamBatchMemOp_v2_ptsz">(stream, stream, count, operations, flags);
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* user_data) {
  return counted<"cuLaunchHostFunc">(stream, stream, function, user_data);
}

CUresult cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn function, void* user_data) {
  return counted_per_thread<"cuLaunchHostFunc_ptsz">(stream, stream, function, user_data);
}

CUresult cuStreamAddCallback(CUstream stream, void* callback, void* user_data, unsigned int flags) {
  return counted<"cuStreamAddCallback">(stream, stream, callback, user_data, flags);
}

CUresult cuStreamAddCallback_ptsz(CUstream stream, void* callback, void* user_data, unsigned int flags) {
  return counted_per_thread<"cuStreamAddCallback_ptsz">(stream, stream, callback, user_data, flags);
}

CUresult cuMemPrefetchAsync(CUdeviceptr memory, std::size_t size_bytes, CUdevice to, CUstream stream) {
  return counted<"cuMemPrefetchAsync">(stream, memory, size_bytes, to, stream);
}

CUresult cuMemPrefetchAsync_ptsz(CUdeviceptr memory, std::size_t size_bytes, CUdevice to, CUstream stream) {
  return counted_per_thread<"cuMemPrefetchAsync_ptsz">(stream, memory, size_bytes, to, stream);
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr memory, std::size_t size_bytes, CUmemLocation to,
                               unsigned int flags, CUstream stream) {
  return counted<"cuMemPrefetchAsync_v2">(stream, memory, size_bytes, to, flags, stream);
}

CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr memory, std::size_t size_bytes, CUmemLocation to,
                                    unsigned int flags, CUstream stream) {
  return counted_per_thread<"cuMemPrefetchAsync_v2_ptsz">(stream, memory, size_bytes, to, flags, stream);
}

CUresult cuMemPrefetchBatchAsync(CUdeviceptr* memory, std::size_t* sizes_bytes, std::size_t count,
                                 CUmemLocation* to, std::size_t* to_indices, std::size_t to_count,
                                 unsigned long long flags, CUstream stream) {
  return counted<"cuMemPrefetchBatchAsync">(stream, memory, sizes_bytes, count, to, to_indices, to_count,
                                            flags, stream);
}

CUresult cuMemPrefetchBatchAsync_ptsz(CUdeviceptr* memory, std::size_t* sizes_bytes, std::size_t count,
                                      CUmemLocation* to, std::size_t* to_indices, std::size_t to_count,
                                      unsigned long long flags, CUstream stream) {
  return counted_per_thread<"cuMemPrefetchBatchAsync_ptsz">(stream, memory, sizes_bytes, count, to,
                                                            to_indices, to_count, flags, stream);
}

CUresult cuMemDiscardBatchAsync(CUdeviceptr* memory, std::size_t* sizes_bytes, std::size_t count,
                                unsigned long long flags, CUstream stream) {
  return counted<"cuMemDiscardBatchAsync">(stream, memory, sizes_bytes, count, flags, stream);
}

CUresult cuMemDiscardBatchAsync_ptsz(CUdeviceptr* memory, std::size_t* sizes_bytes, std::size_t count,
                                     unsigned long long flags, CUstream stream) {
  return counted_per_thread<"cuMemDiscardBatchAsync_ptsz">(stream, memory, sizes_bytes, count, flags, stream);
}

CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr* memory, std::size_t* sizes_bytes, std::size_t count,
                                           CUmemLocation* to, std::size_t* to_indices, std::size_t to_count,
                                           unsigned long long flags, CUstream stream) {
  return counted<"cuMemDiscardAndPrefetchBatchAsync">(stream, memory, sizes_bytes, count, to, to_indices,
                                                      to_count, flags, stream);
}

CUresult cuMemDiscardAndPrefetchBatchAsync_ptsz(CUdeviceptr* memory, std::size_t* sizes_bytes,
                                                std::size_t count, CUmemLocation* to, std::size_t* to_indices,
                                                std::size_t to_count, unsigned long long flags,
                                                CUstream stream) {
  return counted_per_thread<"cuMemDiscardAndPrefetchBatchAsync_ptsz">(stream, memory, sizes_bytes, count, to,
                                                                      to_indices, to_count, flags, stream);
}

CUresult cuMemMapArrayAsync(void* maps, unsigned int count, CUstream stream) {
  return counted<"cuMemMapArrayAsync">(stream, maps, count, stream);
}

CUresult cuMemMapArrayAsync_ptsz(void* maps, unsigned int count, CUstream stream) {
  return counted_per_thread<"cuMemMapArrayAsync_ptsz">(stream, maps, count, stream);
}

CUresult cuMemBatchDecompressAsync(void* operations, std::size_t count, unsigned int flags,
                                   std::size_t* failed, CUstream stream) {
  return counted<"cuMemBatchDecompressAsync">(stream, operations, count, flags, failed, stream);
}

CUresult cuMemBatchDecompressAsync_ptsz(void* operations, std::size_t count, unsigned int flags,
                                        std::size_t* failed, CUstream stream) {
  return counted_per_thread<"cuMemBatchDecompressAsync_ptsz">(stream, operations, count, flags, failed,
                                                              stream);
}

CUresult cuGraphUpload(CUgraphExec graph, CUstream stream) {
  return counted<"cuGraphUpload">(stream, graph, stream);
}

CUresult cuGraphUpload_ptsz(CUgraphExec graph, CUstream stream) {
  return counted_per_thread<"cuGraphUpload_ptsz">(stream, graph, stream);
}

CUresult cuSignalExternalSemaphoresAsync(const void* semaphores, const void* parameters, unsigned int count,
                                         CUstream stream) {
  return counted<"cuSignalExternalSemaphoresAsync">(stream, semaphores, parameters, count, stream);
}

CUresult cuSignalExternalSemaphoresAsync_ptsz(const void* semaphores, const void* parameters,
                                              unsigned int count, CUstream stream) {
  return counted_per_thread<"cuSignalExternalSemaphoresAsync_ptsz">(stream, semaphores, parameters, count,
                                                                    stream);
}

CUresult cuWaitExternalSemaphoresAsync(const void* semaphores, const void* parameters, unsigned int count,
                                       CUstream stream) {
  return counted<"cuWaitExternalSemaphoresAsync">(stream, semaphores, parameters, count, stream);
}

CUresult cuWaitExternalSemaphoresAsync_ptsz(const void* semaphores, const void* parameters,
                                            unsigned int count, CUstream stream) {
  return counted_per_thread<"cuWaitExternalSemaphoresAsync_ptsz">(stream, semaphores, parameters, count,
                                                                  stream);
}

CUresult cuGraphicsMapResources(unsigned int count, void* resources, CUstream stream) {
  return counted<"cuGraphicsMapResources">(stream, count, resources, stream);
}

CUresult cuGraphicsMapResources_ptsz(unsigned int count, void* resources, CUstream stream) {
  return counted_per_thread<"cuGraphicsMapResources_ptsz">(stream, count, resources, stream);
}

CUresult cuGraphicsUnmapResources(unsigned int count, void* resources, CUstream stream) {
  return counted<"cuGraphicsUnmapResources">(stream, count, resources, stream);
}

CUresult cuGraphicsUnmapResources_ptsz(unsigned int count, void* resources, CUstream stream) {
  return counted_per_thread<"cuGraphicsUnmapResources_ptsz">(stream, count, resources, stream);
}
