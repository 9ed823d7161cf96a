// SPDX-License-Identifier: Apache-2.0
/// Entry points: copies and fills.
#include "softgpu/driver/copy.h"
#include "softgpu/driver/entry.h"

using namespace firebreak::softgpu::driver;

namespace {

constexpr bool and_wait = true;

CopyPointer gpu(CUdeviceptr address) { return {address, PointerRole::Gpu}; }
CopyPointer host(const void* address) {
  return {reinterpret_cast<std::uint64_t>(address), PointerRole::Host};
}
CopyPointer either(CUdeviceptr address) { return {address, PointerRole::Either}; }

CUresult copy(const CopyPointer& destination, const CopyPointer& source, std::size_t size_bytes,
              CUstream stream, bool wait) {
  return with_stream(stream, [&](Process& process, Context& context, const std::shared_ptr<Stream>& target) {
    return submit_copy(process, context, target, {destination, source, {size_bytes}, wait});
  });
}

CUresult fill(const FillRequest& request, CUstream stream) {
  return with_stream(stream, [&](Process& process, Context& context, const std::shared_ptr<Stream>& target) {
    return submit_fill(process, context, target, request);
  });
}

/// One side of a 2D copy: the pointer to its first byte.
CopyPointer side_2d(CUmemorytype type, const void* host_pointer, CUdeviceptr device_pointer,
                    std::size_t offset_bytes) {
  if (type == CU_MEMORYTYPE_HOST) return host(static_cast<const char*>(host_pointer) + offset_bytes);
  return type == CU_MEMORYTYPE_DEVICE ? gpu(device_pointer + offset_bytes)
                                      : either(device_pointer + offset_bytes);
}

CUresult copy_2d(const CUDA_MEMCPY2D* request, CUstream stream, bool wait) {
  return with_stream(stream, [&](Process& process, Context& context, const std::shared_ptr<Stream>& target) {
    if (request == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUDA_MEMCPY2D& r = *request;
    if (r.srcMemoryType == CU_MEMORYTYPE_ARRAY || r.dstMemoryType == CU_MEMORYTYPE_ARRAY) {
      return CUDA_ERROR_NOT_SUPPORTED;
    }
    const bool rows_overlap = r.Height > 1 && (r.srcPitch < r.srcXInBytes + r.WidthInBytes ||
                                               r.dstPitch < r.dstXInBytes + r.WidthInBytes);
    if (rows_overlap) return CUDA_ERROR_INVALID_VALUE;
    const CopyPointer source =
        side_2d(r.srcMemoryType, r.srcHost, r.srcDevice, r.srcY * r.srcPitch + r.srcXInBytes);
    const CopyPointer destination =
        side_2d(r.dstMemoryType, r.dstHost, r.dstDevice, r.dstY * r.dstPitch + r.dstXInBytes);
    return submit_copy(process, context, target,
                       {destination, source, {r.WidthInBytes, r.Height, r.srcPitch, r.dstPitch}, wait});
  });
}

}  // namespace

extern "C" {

CUresult cuMemcpy(CUdeviceptr destination, CUdeviceptr source, std::size_t size_bytes) {
  return copy(either(destination), either(source), size_bytes, nullptr, and_wait);
}
CUresult cuMemcpyAsync(CUdeviceptr destination, CUdeviceptr source, std::size_t size_bytes, CUstream stream) {
  return copy(either(destination), either(source), size_bytes, stream, false);
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr destination, const void* source, std::size_t size_bytes) {
  return copy(gpu(destination), host(source), size_bytes, nullptr, and_wait);
}
CUresult cuMemcpyDtoH_v2(void* destination, CUdeviceptr source, std::size_t size_bytes) {
  return copy(host(destination), gpu(source), size_bytes, nullptr, and_wait);
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr destination, CUdeviceptr source, std::size_t size_bytes) {
  return copy(gpu(destination), gpu(source), size_bytes, nullptr, and_wait);
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr destination, const void* source, std::size_t size_bytes,
                              CUstream stream) {
  return copy(gpu(destination), host(source), size_bytes, stream, false);
}
CUresult cuMemcpyDtoHAsync_v2(void* destination, CUdeviceptr source, std::size_t size_bytes,
                              CUstream stream) {
  return copy(host(destination), gpu(source), size_bytes, stream, false);
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr destination, CUdeviceptr source, std::size_t size_bytes,
                              CUstream stream) {
  return copy(gpu(destination), gpu(source), size_bytes, stream, false);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* request) { return copy_2d(request, nullptr, and_wait); }
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* request) { return copy_2d(request, nullptr, and_wait); }
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* request, CUstream stream) {
  return copy_2d(request, stream, false);
}

CUresult cuMemsetD8_v2(CUdeviceptr destination, unsigned char value, std::size_t count) {
  return fill({destination, value, 1, count, 1, 0, and_wait}, nullptr);
}
CUresult cuMemsetD16_v2(CUdeviceptr destination, unsigned short value, std::size_t count) {
  return fill({destination, value, 2, count, 1, 0, and_wait}, nullptr);
}
CUresult cuMemsetD32_v2(CUdeviceptr destination, unsigned int value, std::size_t count) {
  return fill({destination, value, 4, count, 1, 0, and_wait}, nullptr);
}
CUresult cuMemsetD8Async(CUdeviceptr destination, unsigned char value, std::size_t count, CUstream stream) {
  return fill({destination, value, 1, count, 1, 0, false}, stream);
}
CUresult cuMemsetD16Async(CUdeviceptr destination, unsigned short value, std::size_t count, CUstream stream) {
  return fill({destination, value, 2, count, 1, 0, false}, stream);
}
CUresult cuMemsetD32Async(CUdeviceptr destination, unsigned int value, std::size_t count, CUstream stream) {
  return fill({destination, value, 4, count, 1, 0, false}, stream);
}

CUresult cuMemsetD2D8_v2(CUdeviceptr destination, std::size_t pitch_bytes, unsigned char value,
                         std::size_t width, std::size_t height) {
  return fill({destination, value, 1, width, height, pitch_bytes, and_wait}, nullptr);
}
CUresult cuMemsetD2D16_v2(CUdeviceptr destination, std::size_t pitch_bytes, unsigned short value,
                          std::size_t width, std::size_t height) {
  return fill({destination, value, 2, width, height, pitch_bytes, and_wait}, nullptr);
}
CUresult cuMemsetD2D32_v2(CUdeviceptr destination, std::size_t pitch_bytes, unsigned int value,
                          std::size_t width, std::size_t height) {
  return fill({destination, value, 4, width, height, pitch_bytes, and_wait}, nullptr);
}
CUresult cuMemsetD2D8Async(CUdeviceptr destination, std::size_t pitch_bytes, unsigned char value,
                           std::size_t width, std::size_t height, CUstream stream) {
  return fill({destination, value, 1, width, height, pitch_bytes, false}, stream);
}
CUresult cuMemsetD2D16Async(CUdeviceptr destination, std::size_t pitch_bytes, unsigned short value,
                            std::size_t width, std::size_t height, CUstream stream) {
  return fill({destination, value, 2, width, height, pitch_bytes, false}, stream);
}
CUresult cuMemsetD2D32Async(CUdeviceptr destination, std::size_t pitch_bytes, unsigned int value,
                            std::size_t width, std::size_t height, CUstream stream) {
  return fill({destination, value, 4, width, height, pitch_bytes, false}, stream);
}

}  // extern "C"
