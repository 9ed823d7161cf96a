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

/// One side of a copy of rows and layers: where it begins, and how far apart they are.
struct Side {
  CopyPointer first;
  std::size_t pitch_bytes = 0;
  std::size_t layer_bytes = 0;
};

/// How a program names a side.
struct Place {
  CUmemorytype type;
  const void* host_pointer;
  CUdeviceptr device_pointer;
  CUarray array;
  std::size_t x_bytes, y, z;
  std::size_t pitch_bytes, height;
};

struct Box {
  std::size_t width_bytes, height, depth;
};

Answer<Side> side_in_array(Process& process, const Place& place, const Box& box) {
  const auto array = process.arrays().find(place.array);
  if (!array) return refuse(CUDA_ERROR_INVALID_HANDLE);
  const bool inside = place.x_bytes + box.width_bytes <= array->row_bytes() &&
                      place.y + box.height <= array->rows() && place.z + box.depth <= array->layers();
  if (!inside) return refuse(CUDA_ERROR_INVALID_VALUE);
  const std::size_t layer_bytes = array->row_bytes() * array->rows();
  return Side{gpu(array->address + place.z * layer_bytes + place.y * array->row_bytes() + place.x_bytes),
              array->row_bytes(), layer_bytes};
}

Answer<Side> side_of(Process& process, const Place& place, const Box& box) {
  if (place.type == CU_MEMORYTYPE_ARRAY) return side_in_array(process, place, box);
  if (box.height > 1 && place.pitch_bytes < place.x_bytes + box.width_bytes)
    return refuse(CUDA_ERROR_INVALID_VALUE);  // rows that overlap
  if (box.depth > 1 && place.height < place.y + box.height) return refuse(CUDA_ERROR_INVALID_VALUE);
  const std::size_t layer_bytes = place.pitch_bytes * place.height;
  const std::size_t offset_bytes = place.z * layer_bytes + place.y * place.pitch_bytes + place.x_bytes;
  const CopyPointer first =
      place.type == CU_MEMORYTYPE_HOST     ? host(static_cast<const char*>(place.host_pointer) + offset_bytes)
      : place.type == CU_MEMORYTYPE_DEVICE ? gpu(place.device_pointer + offset_bytes)
                                           : either(place.device_pointer + offset_bytes);
  return Side{first, place.pitch_bytes, layer_bytes};
}

CUresult copy_box(const Place& to, const Place& from, const Box& box, CUstream stream, bool wait) {
  return with_stream(stream, [&](Process& process, Context& context, const std::shared_ptr<Stream>& target) {
    const auto destination = side_of(process, to, box);
    const auto source = side_of(process, from, box);
    if (!source) return source.error();
    if (!destination) return destination.error();
    CUresult result = CUDA_SUCCESS;
    for (std::size_t z = 0; z < box.depth && result == CUDA_SUCCESS; ++z) {
      CopyPointer into = destination->first;
      CopyPointer out_of = source->first;
      into.address += z * destination->layer_bytes;
      out_of.address += z * source->layer_bytes;
      const CopyShape layer{box.width_bytes, box.height, source->pitch_bytes, destination->pitch_bytes};
      result = submit_copy(process, context, target, {into, out_of, layer, wait});
    }
    return result;
  });
}

CUresult copy_2d(const CUDA_MEMCPY2D* request, CUstream stream, bool wait) {
  if (request == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_MEMCPY2D& r = *request;
  return copy_box(
      {r.dstMemoryType, r.dstHost, r.dstDevice, r.dstArray, r.dstXInBytes, r.dstY, 0, r.dstPitch, 0},
      {r.srcMemoryType, r.srcHost, r.srcDevice, r.srcArray, r.srcXInBytes, r.srcY, 0, r.srcPitch, 0},
      {r.WidthInBytes, r.Height, 1}, stream, wait);
}

CUresult copy_3d(const CUDA_MEMCPY3D* request, CUstream stream, bool wait) {
  if (request == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_MEMCPY3D& r = *request;
  if (r.srcLOD != 0 || r.dstLOD != 0 || r.reserved0 != nullptr || r.reserved1 != nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  return copy_box({r.dstMemoryType, r.dstHost, r.dstDevice, r.dstArray, r.dstXInBytes, r.dstY, r.dstZ,
                   r.dstPitch, r.dstHeight},
                  {r.srcMemoryType, r.srcHost, r.srcDevice, r.srcArray, r.srcXInBytes, r.srcY, r.srcZ,
                   r.srcPitch, r.srcHeight},
                  {r.WidthInBytes, r.Height, r.Depth}, stream, wait);
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

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* request) { return copy_3d(request, nullptr, and_wait); }
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* request, CUstream stream) {
  return copy_3d(request, stream, false);
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
