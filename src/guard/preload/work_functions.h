// SPDX-License-Identifier: Apache-2.0
/// The driver's functions that give the GPU work other than launches: each is counted, and asks the driver.
/// Structures that nobody here looks into are void. Those with _ptds and _ptsz mean the calling thread's own
/// default stream where they name none.
#pragma once

#include "abi/cuda_driver_functions.h"

#pragma GCC visibility push(default)
extern "C" {
// Copies.
CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes);
CUresult cuMemcpy_ptds(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes);
CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                      std::size_t size_bytes);
CUresult cuMemcpyPeer_ptds(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                           std::size_t size_bytes);
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, std::size_t size_bytes);
CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr to, const void* from, std::size_t size_bytes);
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t size_bytes);
CUresult cuMemcpyDtoH_v2_ptds(void* to, CUdeviceptr from, std::size_t size_bytes);
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes);
CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes);
CUresult cuMemcpyDtoA_v2(CUarray to, std::size_t to_offset, CUdeviceptr from, std::size_t size_bytes);
CUresult cuMemcpyDtoA_v2_ptds(CUarray to, std::size_t to_offset, CUdeviceptr from, std::size_t size_bytes);
CUresult cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, std::size_t from_offset, std::size_t size_bytes);
CUresult cuMemcpyAtoD_v2_ptds(CUdeviceptr to, CUarray from, std::size_t from_offset, std::size_t size_bytes);
CUresult cuMemcpyHtoA_v2(CUarray to, std::size_t to_offset, const void* from, std::size_t size_bytes);
CUresult cuMemcpyHtoA_v2_ptds(CUarray to, std::size_t to_offset, const void* from, std::size_t size_bytes);
CUresult cuMemcpyAtoH_v2(void* to, CUarray from, std::size_t from_offset, std::size_t size_bytes);
CUresult cuMemcpyAtoH_v2_ptds(void* to, CUarray from, std::size_t from_offset, std::size_t size_bytes);
CUresult cuMemcpyAtoA_v2(CUarray to, std::size_t to_offset, CUarray from, std::size_t from_offset,
                         std::size_t size_bytes);
CUresult cuMemcpyAtoA_v2_ptds(CUarray to, std::size_t to_offset, CUarray from, std::size_t from_offset,
                              std::size_t size_bytes);
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy);
CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D* copy);
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy);
CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D* copy);
CUresult cuMemcpy3D_v2(const void* copy);
CUresult cuMemcpy3D_v2_ptds(const void* copy);
CUresult cuMemcpy3DPeer(const void* copy);
CUresult cuMemcpy3DPeer_ptds(const void* copy);
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes, CUstream stream);
CUresult cuMemcpyAsync_ptsz(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes, CUstream stream);
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                           std::size_t size_bytes, CUstream stream);
CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                                CUcontext from_context, std::size_t size_bytes, CUstream stream);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t size_bytes, CUstream stream);
CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr to, const void* from, std::size_t size_bytes, CUstream stream);
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t size_bytes, CUstream stream);
CUresult cuMemcpyDtoHAsync_v2_ptsz(void* to, CUdeviceptr from, std::size_t size_bytes, CUstream stream);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes, CUstream stream);
CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes, CUstream stream);
CUresult cuMemcpyHtoAAsync_v2(CUarray to, std::size_t to_offset, const void* from, std::size_t size_bytes,
                              CUstream stream);
CUresult cuMemcpyHtoAAsync_v2_ptsz(CUarray to, std::size_t to_offset, const void* from,
                                   std::size_t size_bytes, CUstream stream);
CUresult cuMemcpyAtoHAsync_v2(void* to, CUarray from, std::size_t from_offset, std::size_t size_bytes,
                              CUstream stream);
CUresult cuMemcpyAtoHAsync_v2_ptsz(void* to, CUarray from, std::size_t from_offset, std::size_t size_bytes,
                                   CUstream stream);
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream);
CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D* copy, CUstream stream);
CUresult cuMemcpy3DAsync_v2(const void* copy, CUstream stream);
CUresult cuMemcpy3DAsync_v2_ptsz(const void* copy, CUstream stream);
CUresult cuMemcpy3DPeerAsync(const void* copy, CUstream stream);
CUresult cuMemcpy3DPeerAsync_ptsz(const void* copy, CUstream stream);
CUresult cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, std::size_t* sizes_bytes, std::size_t count,
                            void* attributes, std::size_t* attribute_indices, std::size_t attribute_count,
                            std::size_t* failed, CUstream stream);
CUresult cuMemcpyBatchAsync_ptsz(CUdeviceptr* to, CUdeviceptr* from, std::size_t* sizes_bytes,
                                 std::size_t count, void* attributes, std::size_t* attribute_indices,
                                 std::size_t attribute_count, std::size_t* failed, CUstream stream);
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* to, CUdeviceptr* from, std::size_t* sizes_bytes,
                               std::size_t count, void* attributes, std::size_t* attribute_indices,
                               std::size_t attribute_count, CUstream stream);
CUresult cuMemcpyBatchAsync_v2_ptsz(CUdeviceptr* to, CUdeviceptr* from, std::size_t* sizes_bytes,
                                    std::size_t count, void* attributes, std::size_t* attribute_indices,
                                    std::size_t attribute_count, CUstream stream);
CUresult cuMemcpy3DBatchAsync(std::size_t count, void* copies, std::size_t* failed, unsigned long long flags,
                              CUstream stream);
CUresult cuMemcpy3DBatchAsync_ptsz(std::size_t count, void* copies, std::size_t* failed,
                                   unsigned long long flags, CUstream stream);
CUresult cuMemcpy3DBatchAsync_v2(std::size_t count, void* copies, unsigned long long flags, CUstream stream);
CUresult cuMemcpy3DBatchAsync_v2_ptsz(std::size_t count, void* copies, unsigned long long flags,
                                      CUstream stream);

// Fills.
CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, std::size_t count);
CUresult cuMemsetD8_v2_ptds(CUdeviceptr to, unsigned char value, std::size_t count);
CUresult cuMemsetD2D8_v2(CUdeviceptr to, std::size_t pitch_bytes, unsigned char value, std::size_t width,
                         std::size_t height);
CUresult cuMemsetD2D8_v2_ptds(CUdeviceptr to, std::size_t pitch_bytes, unsigned char value, std::size_t width,
                              std::size_t height);
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream);
CUresult cuMemsetD8Async_ptsz(CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream);
CUresult cuMemsetD2D8Async(CUdeviceptr to, std::size_t pitch_bytes, unsigned char value, std::size_t width,
                           std::size_t height, CUstream stream);
CUresult cuMemsetD2D8Async_ptsz(CUdeviceptr to, std::size_t pitch_bytes, unsigned char value,
                                std::size_t width, std::size_t height, CUstream stream);
CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, std::size_t count);
CUresult cuMemsetD16_v2_ptds(CUdeviceptr to, unsigned short value, std::size_t count);
CUresult cuMemsetD2D16_v2(CUdeviceptr to, std::size_t pitch_bytes, unsigned short value, std::size_t width,
                          std::size_t height);
CUresult cuMemsetD2D16_v2_ptds(CUdeviceptr to, std::size_t pitch_bytes, unsigned short value,
                               std::size_t width, std::size_t height);
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, std::size_t count, CUstream stream);
CUresult cuMemsetD16Async_ptsz(CUdeviceptr to, unsigned short value, std::size_t count, CUstream stream);
CUresult cuMemsetD2D16Async(CUdeviceptr to, std::size_t pitch_bytes, unsigned short value, std::size_t width,
                            std::size_t height, CUstream stream);
CUresult cuMemsetD2D16Async_ptsz(CUdeviceptr to, std::size_t pitch_bytes, unsigned short value,
                                 std::size_t width, std::size_t height, CUstream stream);
CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned int value, std::size_t count);
CUresult cuMemsetD32_v2_ptds(CUdeviceptr to, unsigned int value, std::size_t count);
CUresult cuMemsetD2D32_v2(CUdeviceptr to, std::size_t pitch_bytes, unsigned int value, std::size_t width,
                          std::size_t height);
CUresult cuMemsetD2D32_v2_ptds(CUdeviceptr to, std::size_t pitch_bytes, unsigned int value, std::size_t width,
                               std::size_t height);
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, std::size_t count, CUstream stream);
CUresult cuMemsetD32Async_ptsz(CUdeviceptr to, unsigned int value, std::size_t count, CUstream stream);
CUresult cuMemsetD2D32Async(CUdeviceptr to, std::size_t pitch_bytes, unsigned int value, std::size_t width,
                            std::size_t height, CUstream stream);
CUresult cuMemsetD2D32Async_ptsz(CUdeviceptr to, std::size_t pitch_bytes, unsigned int value,
                                 std::size_t width, std::size_t height, CUstream stream);

// What else works in stream order.
CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, std::uint32_t value, unsigned int flags);
CUresult cuStreamWaitValue32_ptsz(CUstream stream, CUdeviceptr address, std::uint32_t value,
                                  unsigned int flags);
CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, std::uint32_t value,
                                unsigned int flags);
CUresult cuStreamWaitValue32_v2_ptsz(CUstream stream, CUdeviceptr address, std::uint32_t value,
                                     unsigned int flags);
CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr address, std::uint64_t value, unsigned int flags);
CUresult cuStreamWaitValue64_ptsz(CUstream stream, CUdeviceptr address, std::uint64_t value,
                                  unsigned int flags);
CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, std::uint64_t value,
                                unsigned int flags);
CUresult cuStreamWaitValue64_v2_ptsz(CUstream stream, CUdeviceptr address, std::uint64_t value,
                                     unsigned int flags);
CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, std::uint32_t value, unsigned int flags);
CUresult cuStreamWriteValue32_ptsz(CUstream stream, CUdeviceptr address, std::uint32_t value,
                                   unsigned int flags);
CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, std::uint32_t value,
                                 unsigned int flags);
CUresult cuStreamWriteValue32_v2_ptsz(CUstream stream, CUdeviceptr address, std::uint32_t value,
                                      unsigned int flags);
CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address, std::uint64_t value, unsigned int flags);
CUresult cuStreamWriteValue64_ptsz(CUstream stream, CUdeviceptr address, std::uint64_t value,
                                   unsigned int flags);
CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, std::uint64_t value,
                                 unsigned int flags);
CUresult cuStreamWriteValue64_v2_ptsz(CUstream stream, CUdeviceptr address, std::uint64_t value,
                                      unsigned int flags);
CUresult cuStreamBatchMemOp(CUstream stream, unsigned int count, void* operations, unsigned int flags);
CUresult cuStreamBatchMemOp_ptsz(CUstream stream, unsigned int count, void* operations, unsigned int flags);
CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, void* operations, unsigned int flags);
CUresult cuStreamBatchMemOp_v2_ptsz(CUstream stream, unsigned int count, void* operations,
                                    unsigned int flags);
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* user_data);
CUresult cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn function, void* user_data);
CUresult cuStreamAddCallback(CUstream stream, void* callback, void* user_data, unsigned int flags);
CUresult cuStreamAddCallback_ptsz(CUstream stream, void* callback, void* user_data, unsigned int flags);
CUresult cuMemPrefetchAsync(CUdeviceptr memory, std::size_t size_bytes, CUdevice to, CUstream stream);
CUresult cuMemPrefetchAsync_ptsz(CUdeviceptr memory, std::size_t size_bytes, CUdevice to, CUstream stream);
CUresult cuMemPrefetchAsync_v2(CUdeviceptr memory, std::size_t size_bytes, CUmemLocation to,
                               unsigned int flags, CUstream stream);
CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr memory, std::size_t size_bytes, CUmemLocation to,
                                    unsigned int flags, CUstream stream);
CUresult cuMemPrefetchBatchAsync(CUdeviceptr* memory, std::size_t* sizes_bytes, std::size_t count,
                                 CUmemLocation* to, std::size_t* to_indices, std::size_t to_count,
                                 unsigned long long flags, CUstream stream);
CUresult cuMemPrefetchBatchAsync_ptsz(CUdeviceptr* memory, std::size_t* sizes_bytes, std::size_t count,
                                      CUmemLocation* to, std::size_t* to_indices, std::size_t to_count,
                                      unsigned long long flags, CUstream stream);
CUresult cuMemDiscardBatchAsync(CUdeviceptr* memory, std::size_t* sizes_bytes, std::size_t count,
                                unsigned long long flags, CUstream stream);
CUresult cuMemDiscardBatchAsync_ptsz(CUdeviceptr* memory, std::size_t* sizes_bytes, std::size_t count,
                                     unsigned long long flags, CUstream stream);
CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr* memory, std::size_t* sizes_bytes, std::size_t count,
                                           CUmemLocation* to, std::size_t* to_indices, std::size_t to_count,
                                           unsigned long long flags, CUstream stream);
CUresult cuMemDiscardAndPrefetchBatchAsync_ptsz(CUdeviceptr* memory, std::size_t* sizes_bytes,
                                                std::size_t count, CUmemLocation* to, std::size_t* to_indices,
                                                std::size_t to_count, unsigned long long flags,
                                                CUstream stream);
CUresult cuMemMapArrayAsync(void* maps, unsigned int count, CUstream stream);
CUresult cuMemMapArrayAsync_ptsz(void* maps, unsigned int count, CUstream stream);
CUresult cuMemBatchDecompressAsync(void* operations, std::size_t count, unsigned int flags,
                                   std::size_t* failed, CUstream stream);
CUresult cuMemBatchDecompressAsync_ptsz(void* operations, std::size_t count, unsigned int flags,
                                        std::size_t* failed, CUstream stream);
CUresult cuGraphUpload(CUgraphExec graph, CUstream stream);
CUresult cuGraphUpload_ptsz(CUgraphExec graph, CUstream stream);
CUresult cuSignalExternalSemaphoresAsync(const void* semaphores, const void* parameters, unsigned int count,
                                         CUstream stream);
CUresult cuSignalExternalSemaphoresAsync_ptsz(const void* semaphores, const void* parameters,
                                              unsigned int count, CUstream stream);
CUresult cuWaitExternalSemaphoresAsync(const void* semaphores, const void* parameters, unsigned int count,
                                       CUstream stream);
CUresult cuWaitExternalSemaphoresAsync_ptsz(const void* semaphores, const void* parameters,
                                            unsigned int count, CUstream stream);
CUresult cuGraphicsMapResources(unsigned int count, void* resources, CUstream stream);
CUresult cuGraphicsMapResources_ptsz(unsigned int count, void* resources, CUstream stream);
CUresult cuGraphicsUnmapResources(unsigned int count, void* resources, CUstream stream);
CUresult cuGraphicsUnmapResources_ptsz(unsigned int count, void* resources, CUstream stream);
}
#pragma GCC visibility pop
