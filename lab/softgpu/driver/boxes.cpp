// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/boxes.h"

namespace firebreak::softgpu::driver {

namespace {

CopyPointer gpu(CUdeviceptr address) { return {address, PointerRole::Gpu}; }
CopyPointer host(const void* address) {
  return {reinterpret_cast<std::uint64_t>(address), PointerRole::Host};
}
CopyPointer either(CUdeviceptr address) { return {address, PointerRole::Either}; }

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

Answer<std::vector<CopyRequest>> layers(Process& process, const Place& to, const Place& from,
                                        const Box& box) {
  const auto destination = side_of(process, to, box);
  const auto source = side_of(process, from, box);
  if (!source) return refuse(source.error());
  if (!destination) return refuse(destination.error());
  std::vector<CopyRequest> all;
  for (std::size_t z = 0; z < box.depth; ++z) {
    CopyPointer into = destination->first;
    CopyPointer out_of = source->first;
    into.address += z * destination->layer_bytes;
    out_of.address += z * source->layer_bytes;
    all.push_back(
        {into, out_of, {box.width_bytes, box.height, source->pitch_bytes, destination->pitch_bytes}, false});
  }
  return all;
}

}  // namespace

Answer<std::vector<CopyRequest>> layers_of(Process& process, const CUDA_MEMCPY3D& r) {
  if (r.srcLOD != 0 || r.dstLOD != 0 || r.reserved0 != nullptr || r.reserved1 != nullptr)
    return refuse(CUDA_ERROR_INVALID_VALUE);
  return layers(process,
                {r.dstMemoryType, r.dstHost, r.dstDevice, r.dstArray, r.dstXInBytes, r.dstY, r.dstZ,
                 r.dstPitch, r.dstHeight},
                {r.srcMemoryType, r.srcHost, r.srcDevice, r.srcArray, r.srcXInBytes, r.srcY, r.srcZ,
                 r.srcPitch, r.srcHeight},
                {r.WidthInBytes, r.Height, r.Depth});
}

CUDA_MEMCPY3D box_of(const CUDA_MEMCPY2D& r) {
  CUDA_MEMCPY3D box{};
  box.srcXInBytes = r.srcXInBytes;
  box.srcY = r.srcY;
  box.srcMemoryType = r.srcMemoryType;
  box.srcHost = r.srcHost;
  box.srcDevice = r.srcDevice;
  box.srcArray = r.srcArray;
  box.srcPitch = r.srcPitch;
  box.dstXInBytes = r.dstXInBytes;
  box.dstY = r.dstY;
  box.dstMemoryType = r.dstMemoryType;
  box.dstHost = r.dstHost;
  box.dstDevice = r.dstDevice;
  box.dstArray = r.dstArray;
  box.dstPitch = r.dstPitch;
  box.WidthInBytes = r.WidthInBytes;
  box.Height = r.Height;
  box.Depth = 1;
  return box;
}

CUDA_MEMCPY3D box_of(const CopyPointer& destination, const CopyPointer& source, std::size_t size_bytes) {
  const auto type_of = [](const CopyPointer& pointer) {
    if (pointer.role == PointerRole::Host) return CU_MEMORYTYPE_HOST;
    return pointer.role == PointerRole::Gpu ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_UNIFIED;
  };
  CUDA_MEMCPY3D box{};
  box.srcMemoryType = type_of(source);
  box.srcHost = reinterpret_cast<const void*>(source.address);
  box.srcDevice = source.address;
  box.dstMemoryType = type_of(destination);
  box.dstHost = reinterpret_cast<void*>(destination.address);
  box.dstDevice = destination.address;
  // The other member says nothing.
  (box.srcMemoryType == CU_MEMORYTYPE_HOST ? (void)(box.srcDevice = 0) : (void)(box.srcHost = nullptr));
  (box.dstMemoryType == CU_MEMORYTYPE_HOST ? (void)(box.dstDevice = 0) : (void)(box.dstHost = nullptr));
  box.WidthInBytes = size_bytes;
  box.Height = 1;
  box.Depth = 1;
  return box;
}

}  // namespace firebreak::softgpu::driver
