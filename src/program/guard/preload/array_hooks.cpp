// SPDX-License-Identifier: Apache-2.0
/// Arrays come and go. Nobody knows where they lie, so the ledger has them by their handles.
#include <algorithm>

#include "program/guard/preload/hooks.h"
#include "shared/abi/cuda_arrays.h"

namespace firebreak::guard::hooks {
namespace {

using abi::GuardFunction;

/// Formats that are not plain numbers have at least that many.
std::size_t number_bytes(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    default:
      return 1;
  }
}

std::size_t size_bytes_of(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  const std::size_t elements =
      shape.Width * std::max<std::size_t>(1, shape.Height) * std::max<std::size_t>(1, shape.Depth);
  return elements * shape.NumChannels * number_bytes(shape.Format);
}

CUresult made(const Call& call, CUresult result, GuardFunction function, const void* array,
              std::size_t size_bytes) {
  Guard* const ours = result == CUDA_SUCCESS ? call.guard() : nullptr;
  if (ours != nullptr) ours->array_made(function, array, size_bytes);
  return result;
}

CUresult ended(const Call& call, CUresult result, const void* array) {
  Guard* const ours = result == CUDA_SUCCESS ? call.guard() : nullptr;
  if (ours != nullptr) ours->displaced(reinterpret_cast<CUdeviceptr>(array));
  return result;
}

}  // namespace

CUresult cuArrayCreate_v2(const Call& call, CUarray* array, const CUDA_ARRAY_DESCRIPTOR* shape) {
  const CUresult result = call.driver.cuArrayCreate_v2(array, shape);
  if (result != CUDA_SUCCESS) return result;
  const CUDA_ARRAY3D_DESCRIPTOR flat{shape->Width, shape->Height, 0, shape->Format, shape->NumChannels, 0};
  return made(call, result, GuardFunction::ArrayCreate, *array, size_bytes_of(flat));
}

CUresult cuArray3DCreate_v2(const Call& call, CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* shape) {
  const CUresult result = call.driver.cuArray3DCreate_v2(array, shape);
  if (result != CUDA_SUCCESS) return result;
  return made(call, result, GuardFunction::Array3DCreate, *array, size_bytes_of(*shape));
}

CUresult cuArrayDestroy(const Call& call, CUarray array) {
  return ended(call, call.driver.cuArrayDestroy(array), array);
}

/// The array counts as its largest level.
CUresult cuMipmappedArrayCreate(const Call& call, CUmipmappedArray* array,
                                const CUDA_ARRAY3D_DESCRIPTOR* shape, unsigned int levels) {
  const CUresult result = call.driver.cuMipmappedArrayCreate(array, shape, levels);
  if (result != CUDA_SUCCESS) return result;
  return made(call, result, GuardFunction::MipmappedArrayCreate, *array, size_bytes_of(*shape));
}

CUresult cuMipmappedArrayDestroy(const Call& call, CUmipmappedArray array) {
  return ended(call, call.driver.cuMipmappedArrayDestroy(array), array);
}

}  // namespace firebreak::guard::hooks
