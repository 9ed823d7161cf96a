// SPDX-License-Identifier: Apache-2.0
/// Copies, in the driver's place.
#include "guard/preload/counting.h"
#include "guard/preload/work_functions.h"

using firebreak::guard::counted;
using firebreak::guard::counted_per_thread;

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes) {
  return counted<"cuMemcpy">(nullptr, to, from, size_bytes);
}

CUresult cuMemcpy_ptds(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes) {
  return counted_per_thread<"cuMemcpy_ptds">(nullptr, to, from, size_bytes);
}

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                      std::size_t size_bytes) {
  return counted<"cuMemcpyPeer">(nullptr, to, to_context, from, from_context, size_bytes);
}

CUresult cuMemcpyPeer_ptds(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                           std::size_t size_bytes) {
  return counted_per_thread<"cuMemcpyPeer_ptds">(nullptr, to, to_context, from, from_context, size_bytes);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, std::size_t size_bytes) {
  return counted<"cuMemcpyHtoD_v2">(nullptr, to, from, size_bytes);
}

CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr to, const void* from, std::size_t size_bytes) {
  return counted_per_thread<"cuMemcpyHtoD_v2_ptds">(nullptr, to, from, size_bytes);
}

CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t size_bytes) {
  return counted<"cuMemcpyDtoH_v2">(nullptr, to, from, size_bytes);
}

CUresult cuMemcpyDtoH_v2_ptds(void* to, CUdeviceptr from, std::size_t size_bytes) {
  return counted_per_thread<"cuMemcpyDtoH_v2_ptds">(nullptr, to, from, size_bytes);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes) {
  return counted<"cuMemcpyDtoD_v2">(nullptr, to, from, size_bytes);
}

CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes) {
  return counted_per_thread<"cuMemcpyDtoD_v2_ptds">(nullptr, to, from, size_bytes);
}

CUresult cuMemcpyDtoA_v2(CUarray to, std::size_t to_offset, CUdeviceptr from, std::size_t size_bytes) {
  return counted<"cuMemcpyDtoA_v2">(nullptr, to, to_offset, from, size_bytes);
}

CUresult cuMemcpyDtoA_v2_ptds(CUarray to, std::size_t to_offset, CUdeviceptr from, std::size_t size_bytes) {
  return counted_per_thread<"cuMemcpyDtoA_v2_ptds">(nullptr, to, to_offset, from, size_bytes);
}

CUresult cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, std::size_t from_offset, std::size_t size_bytes) {
  return counted<"cuMemcpyAtoD_v2">(nullptr, to, from, from_offset, size_bytes);
}

CUresult cuMemcpyAtoD_v2_ptds(CUdeviceptr to, CUarray from, std::size_t from_offset, std::size_t size_bytes) {
  return counted_per_thread<"cuMemcpyAtoD_v2_ptds">(nullptr, to, from, from_offset, size_bytes);
}

CUresult cuMemcpyHtoA_v2(CUarray to, std::size_t to_offset, const void* from, std::size_t size_bytes) {
  return counted<"cuMemcpyHtoA_v2">(nullptr, to, to_offset, from, size_bytes);
}

CUresult cuMemcpyHtoA_v2_ptds(CUarray to, std::size_t to_offset, const void* from, std::size_t size_bytes) {
  return counted_per_thread<"cuMemcpyHtoA_v2_ptds">(nullptr, to, to_offset, from, size_bytes);
}

CUresult cuMemcpyAtoH_v2(void* to, CUarray from, std::size_t from_offset, std::size_t size_bytes) {
  return counted<"cuMemcpyAtoH_v2">(nullptr, to, from, from_offset, size_bytes);
}

CUresult cuMemcpyAtoH_v2_ptds(void* to, CUarray from, std::size_t from_offset, std::size_t size_bytes) {
  return counted_per_thread<"cuMemcpyAtoH_v2_ptds">(nullptr, to, from, from_offset, size_bytes);
}

CUresult cuMemcpyAtoA_v2(CUarray to, std::size_t to_offset, CUarray from, std::size_t from_offset,
                         std::size_t size_bytes) {
  return counted<"cuMemcpyAtoA_v2">(nullptr, to, to_offset, from, from_offset, size_bytes);
}

CUresult cuMemcpyAtoA_v2_ptds(CUarray to, std::size_t to_offset, CUarray from, std::size_t from_offset,
                              std::size_t size_bytes) {
  return counted_per_thread<"cuMemcpyAtoA_v2_ptds">(nullptr, to, to_offset, from, from_offset, size_bytes);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) { return counted<"cuMemcpy2D_v2">(nullptr, copy); }

CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D* copy) {
  return counted_per_thread<"cuMemcpy2D_v2_ptds">(nullptr, copy);
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) {
  return counted<"cuMemcpy2DUnaligned_v2">(nullptr, copy);
}

CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D* copy) {
  return counted_per_thread<"cuMemcpy2DUnaligned_v2_ptds">(nullptr, copy);
}

CUresult cuMemcpy3D_v2(const void* copy) { return counted<"cuMemcpy3D_v2">(nullptr, copy); }

CUresult cuMemcpy3D_v2_ptds(const void* copy) {
  return counted_per_thread<"cuMemcpy3D_v2_ptds">(nullptr, copy);
}

CUresult cuMemcpy3DPeer(const void* copy) { return counted<"cuMemcpy3DPeer">(nullptr, copy); }

CUresult cuMemcpy3DPeer_ptds(const void* copy) {
  return counted_per_thread<"cuMemcpy3DPeer_ptds">(nullptr, copy);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes, CUstream stream) {
  return counted<"cuMemcpyAsync">(stream, to, from, size_bytes, stream);
}

CUresult cuMemcpyAsync_ptsz(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes, CUstream stream) {
  return counted_per_thread<"cuMemcpyAsync_ptsz">(stream, to, from, size_bytes, stream);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                           std::size_t size_bytes, CUstream stream) {
  return counted<"cuMemcpyPeerAsync">(stream, to, to_context, from, from_context, size_bytes, stream);
}

CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                                CUcontext from_context, std::size_t size_bytes, CUstream stream) {
  return counted_per_thread<"cuMemcpyPeerAsync_ptsz">(stream, to, to_context, from, from_context, size_bytes,
                                                      stream);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t size_bytes, CUstream stream) {
  return counted<"cuMemcpyHtoDAsync_v2">(stream, to, from, size_bytes, stream);
}

CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr to, const void* from, std::size_t size_bytes,
                                   CUstream stream) {
  return counted_per_thread<"cuMemcpyHtoDAsync_v2_ptsz">(stream, to, from, size_bytes, stream);
}

CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t size_bytes, CUstream stream) {
  return counted<"cuMemcpyDtoHAsync_v2">(stream, to, from, size_bytes, stream);
}

CUresult cuMemcpyDtoHAsync_v2_ptsz(void* to, CUdeviceptr from, std::size_t size_bytes, CUstream stream) {
  return counted_per_thread<"cuMemcpyDtoHAsync_v2_ptsz">(stream, to, from, size_bytes, stream);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes, CUstream stream) {
  return counted<"cuMemcpyDtoDAsync_v2">(stream, to, from, size_bytes, stream);
}

CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr to, CUdeviceptr from, std::size_t size_bytes,
                                   CUstream stream) {
  return counted_per_thread<"cuMemcpyDtoDAsync_v2_ptsz">(stream, to, from, size_bytes, stream);
}

CUresult cuMemcpyHtoAAsync_v2(CUarray to, std::size_t to_offset, const void* from, std::size_t size_bytes,
                              CUstream stream) {
  return counted<"cuMemcpyHtoAAsync_v2">(stream, to, to_offset, from, size_bytes, stream);
}

CUresult cuMemcpyHtoAAsync_v2_ptsz(CUarray to, std::size_t to_offset, const void* from,
                                   std::size_t size_bytes, CUstream stream) {
  return counted_per_thread<"cuMemcpyHtoAAsync_v2_ptsz">(stream, to, to_offset, from, size_bytes, stream);
}

CUresult cuMemcpyAtoHAsync_v2(void* to, CUarray from, std::size_t from_offset, std::size_t size_bytes,
                              CUstream stream) {
  return counted<"cuMemcpyAtoHAsync_v2">(stream, to, from, from_offset, size_bytes, stream);
}

CUresult cuMemcpyAtoHAsync_v2_ptsz(void* to, CUarray from, std::size_t from_offset, std::size_t size_bytes,
                                   CUstream stream) {
  return counted_per_thread<"cuMemcpyAtoHAsync_v2_ptsz">(stream, to, from, from_offset, size_bytes, stream);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return counted<"cuMemcpy2DAsync_v2">(stream, copy, stream);
}

CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return counted_per_thread<"cuMemcpy2DAsync_v2_ptsz">(stream, copy, stream);
}

CUresult cuMemcpy3DAsync_v2(const void* copy, CUstream stream) {
  return counted<"cuMemcpy3DAsync_v2">(stream, copy, stream);
}

CUresult cuMemcpy3DAsync_v2_ptsz(const void* copy, CUstream stream) {
  return counted_per_thread<"cuMemcpy3DAsync_v2_ptsz">(stream, copy, stream);
}

CUresult cuMemcpy3DPeerAsync(const void* copy, CUstream stream) {
  return counted<"cuMemcpy3DPeerAsync">(stream, copy, stream);
}

CUresult cuMemcpy3DPeerAsync_ptsz(const void* copy, CUstream stream) {
  return counted_per_thread<"cuMemcpy3DPeerAsync_ptsz">(stream, copy, stream);
}

CUresult cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, std::size_t* sizes_bytes, std::size_t count,
                            void* attributes, std::size_t* attribute_indices, std::size_t attribute_count,
                            std::size_t* failed, CUstream stream) {
  return counted<"cuMemcpyBatchAsync">(stream, to, from, sizes_bytes, count, attributes, attribute_indices,
                                       attribute_count, failed, stream);
}

CUresult cuMemcpyBatchAsync_ptsz(CUdeviceptr* to, CUdeviceptr* from, std::size_t* sizes_bytes,
                                 std::size_t count, void* attributes, std::size_t* attribute_indices,
                                 std::size_t attribute_count, std::size_t* failed, CUstream stream) {
  return counted_per_thread<"cuMemcpyBatchAsync_ptsz">(stream, to, from, sizes_bytes, count, attributes,
                                                       attribute_indices, attribute_count, failed, stream);
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* to, CUdeviceptr* from, std::size_t* sizes_bytes,
                               std::size_t count, void* attributes, std::size_t* attribute_indices,
                               std::size_t attribute_count, CUstream stream) {
  return counted<"cuMemcpyBatchAsync_v2">(stream, to, from, sizes_bytes, count, attributes, attribute_indices,
                                          attribute_count, stream);
}

CUresult cuMemcpyBatchAsync_v2_ptsz(CUdeviceptr* to, CUdeviceptr* from, std::size_t* sizes_bytes,
                                    std::size_t count, void* attributes, std::size_t* attribute_indices,
                                    std::size_t attribute_count, CUstream stream) {
  return counted_per_thread<"cuMemcpyBatchAsync_v2_ptsz">(stream, to, from, sizes_bytes, count, attributes,
                                                          attribute_indices, attribute_count, stream);
}

CUresult cuMemcpy3DBatchAsync(std::size_t count, void* copies, std::size_t* failed, unsigned long long flags,
                              CUstream stream) {
  return counted<"cuMemcpy3DBatchAsync">(stream, count, copies, failed, flags, stream);
}

CUresult cuMemcpy3DBatchAsync_ptsz(std::size_t count, void* copies, std::size_t* failed,
                                   unsigned long long flags, CUstream stream) {
  return counted_per_thread<"cuMemcpy3DBatchAsync_ptsz">(stream, count, copies, failed, flags, stream);
}

CUresult cuMemcpy3DBatchAsync_v2(std::size_t count, void* copies, unsigned long long flags, CUstream stream) {
  return counted<"cuMemcpy3DBatchAsync_v2">(stream, count, copies, flags, stream);
}

CUresult cuMemcpy3DBatchAsync_v2_ptsz(std::size_t count, void* copies, unsigned long long flags,
                                      CUstream stream) {
  return counted_per_thread<"cuMemcpy3DBatchAsync_v2_ptsz">(stream, count, copies, flags, stream);
}
