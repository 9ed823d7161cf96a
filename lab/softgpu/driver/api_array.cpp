// SPDX-License-Identifier: Apache-2.0
/// Entry points: arrays, and copies of a row of one. Other copies of arrays are in api_memcpy.cpp.
#include "softgpu/driver/array.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "softgpu/driver/copy.h"
#include "softgpu/driver/entry.h"

using namespace firebreak::softgpu::driver;

namespace {

constexpr bool and_wait = true;

CUarray add(Process& process, const Array& array) {
  return reinterpret_cast<CUarray>(process.arrays().add(std::make_shared<Array>(array)));
}

CUresult create(CUarray* answer, const CUDA_ARRAY3D_DESCRIPTOR* shape) {
  return with_context([&](Process& process, Context& context) {
    if (answer == nullptr || shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult bad = check_shape(*shape); bad != CUDA_SUCCESS) return bad;
    Array array{*shape, context.home(), 0, false};
    const auto memory = process.memory().allocate(array.size_bytes(), context.home());
    if (!memory) return memory.error();
    array.address = *memory;
    *answer = add(process, array);
    return CUDA_SUCCESS;
  });
}

/// Gives it back once nothing uses it any more.
CUresult give_back(Process& process, CUcontext made_in, std::uint64_t address) {
  if (const auto context = process.contexts().find(made_in)) {
    if (const CUresult result = process.synchronize(*context); result != CUDA_SUCCESS) return result;
  }
  return process.memory().free(address, AllocationKind::Device);
}

CUDA_ARRAY3D_DESCRIPTOR level_of(CUDA_ARRAY3D_DESCRIPTOR shape, unsigned int level) {
  const bool is_layered = (shape.Flags & CUDA_ARRAY3D_LAYERED) != 0;
  const auto smaller = [level](std::size_t size) {
    return size == 0 ? 0 : std::max<std::size_t>(1, size >> level);
  };
  shape.Width = smaller(shape.Width);
  shape.Height = smaller(shape.Height);
  if (!is_layered) shape.Depth = smaller(shape.Depth);
  return shape;
}

/// One side of a copy; of an array its bytes from `pointer.address` on.
struct Side {
  CopyPointer pointer;
  std::optional<CUarray> array;
};

CUresult copy(Side to, Side from, std::size_t size_bytes, CUstream stream, bool wait) {
  return with_stream(stream, [&](Process& process, Context& context, const std::shared_ptr<Stream>& target) {
    for (Side* side : {&to, &from}) {
      if (!side->array) continue;
      const auto array = process.arrays().find(*side->array);
      if (!array) return CUDA_ERROR_INVALID_HANDLE;
      const std::uint64_t begin = side->pointer.address;
      if (begin > array->size_bytes() || size_bytes > array->size_bytes() - begin)
        return CUDA_ERROR_INVALID_VALUE;
      side->pointer = {array->address + begin, PointerRole::Gpu};
    }
    return submit_copy(process, context, target, {to.pointer, from.pointer, {size_bytes}, wait});
  });
}

Side host(const void* address) { return {{reinterpret_cast<std::uint64_t>(address), PointerRole::Host}, {}}; }
Side gpu(CUdeviceptr address) { return {{address, PointerRole::Gpu}, {}}; }
Side part(CUarray array, std::size_t offset_bytes) { return {{offset_bytes, PointerRole::Gpu}, array}; }

}  // namespace

extern "C" {

CUresult cuArray3DCreate_v2(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* shape) {
  return create(array, shape);
}

CUresult cuArrayCreate_v2(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* shape) {
  if (shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_ARRAY3D_DESCRIPTOR flat{shape->Width, shape->Height, 0, shape->Format, shape->NumChannels, 0};
  return create(array, &flat);
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* shape, CUarray handle) {
  return with_context([&](Process& process, Context&) {
    const auto array = process.arrays().find(handle);
    if (!array) return CUDA_ERROR_INVALID_HANDLE;
    if (shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *shape = array->shape;
    return CUDA_SUCCESS;
  });
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* shape, CUarray handle) {
  CUDA_ARRAY3D_DESCRIPTOR whole{};
  if (shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = cuArray3DGetDescriptor_v2(&whole, handle);
  if (result == CUDA_SUCCESS) *shape = {whole.Width, whole.Height, whole.Format, whole.NumChannels};
  return result;
}

CUresult cuArrayDestroy(CUarray handle) {
  return with_live_process([&](Process& process) {
    const auto array = process.arrays().find(handle);
    if (!array || array->is_level) return CUDA_ERROR_INVALID_HANDLE;
    process.arrays().remove(handle);
    return give_back(process, array->context, array->address);
  });
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray* answer, const CUDA_ARRAY3D_DESCRIPTOR* shape,
                                unsigned int count) {
  return with_context([&](Process& process, Context& context) {
    if (answer == nullptr || shape == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult bad = check_shape(*shape); bad != CUDA_SUCCESS) return bad;
    std::vector<Array> levels;
    std::uint64_t size_bytes = 0;
    for (unsigned int level = 0; level < std::min(count, 18U); ++level) {
      levels.push_back({level_of(*shape, level), context.home(), size_bytes, true});
      size_bytes += levels.back().size_bytes();
    }
    const auto memory = process.memory().allocate(size_bytes, context.home());
    if (!memory) return memory.error();
    auto all = std::make_shared<MipmappedArray>();
    all->context = context.home();
    all->address = *memory;
    for (Array& level : levels) {
      level.address += *memory;
      all->levels.push_back(add(process, level));
    }
    *answer = reinterpret_cast<CUmipmappedArray>(process.mipmapped_arrays().add(std::move(all)));
    return CUDA_SUCCESS;
  });
}

CUresult cuMipmappedArrayGetLevel(CUarray* answer, CUmipmappedArray handle, unsigned int level) {
  return with_context([&](Process& process, Context&) {
    const auto all = process.mipmapped_arrays().find(handle);
    if (!all) return CUDA_ERROR_INVALID_HANDLE;
    if (answer == nullptr || level >= all->levels.size()) return CUDA_ERROR_INVALID_VALUE;
    *answer = all->levels[level];
    return CUDA_SUCCESS;
  });
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray handle) {
  return with_live_process([&](Process& process) {
    const auto all = process.mipmapped_arrays().remove(handle);
    if (!all) return CUDA_ERROR_INVALID_HANDLE;
    for (const CUarray level : all->levels) process.arrays().remove(level);
    return give_back(process, all->context, all->address);
  });
}

CUresult cuMemcpyHtoA_v2(CUarray to, std::size_t offset_bytes, const void* from, std::size_t size_bytes) {
  return copy(part(to, offset_bytes), host(from), size_bytes, nullptr, and_wait);
}
CUresult cuMemcpyAtoH_v2(void* to, CUarray from, std::size_t offset_bytes, std::size_t size_bytes) {
  return copy(host(to), part(from, offset_bytes), size_bytes, nullptr, and_wait);
}
CUresult cuMemcpyDtoA_v2(CUarray to, std::size_t offset_bytes, CUdeviceptr from, std::size_t size_bytes) {
  return copy(part(to, offset_bytes), gpu(from), size_bytes, nullptr, and_wait);
}
CUresult cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, std::size_t offset_bytes, std::size_t size_bytes) {
  return copy(gpu(to), part(from, offset_bytes), size_bytes, nullptr, and_wait);
}
CUresult cuMemcpyAtoA_v2(CUarray to, std::size_t to_offset_bytes, CUarray from, std::size_t from_offset_bytes,
                         std::size_t size_bytes) {
  return copy(part(to, to_offset_bytes), part(from, from_offset_bytes), size_bytes, nullptr, and_wait);
}
CUresult cuMemcpyHtoAAsync_v2(CUarray to, std::size_t offset_bytes, const void* from, std::size_t size_bytes,
                              CUstream stream) {
  return copy(part(to, offset_bytes), host(from), size_bytes, stream, false);
}
CUresult cuMemcpyAtoHAsync_v2(void* to, CUarray from, std::size_t offset_bytes, std::size_t size_bytes,
                              CUstream stream) {
  return copy(host(to), part(from, offset_bytes), size_bytes, stream, false);
}

}  // extern "C"
