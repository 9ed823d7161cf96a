// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/array.h"

#include <algorithm>

namespace firebreak::softgpu::driver {
namespace {

/// 0: not one of plain numbers.
std::uint64_t number_bytes(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4;
  }
  return 0;
}

}  // namespace

std::uint64_t Array::row_bytes() const {
  return shape.Width * shape.NumChannels * number_bytes(shape.Format);
}
std::uint64_t Array::rows() const { return std::max<std::uint64_t>(1, shape.Height); }
std::uint64_t Array::layers() const { return std::max<std::uint64_t>(1, shape.Depth); }

CUresult check_shape(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  constexpr std::size_t most = std::size_t{1} << 17;
  constexpr unsigned int known =
      CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_TEXTURE_GATHER;
  const bool has_channels = shape.NumChannels == 1 || shape.NumChannels == 2 || shape.NumChannels == 4;
  if (shape.Width == 0 || !has_channels) return CUDA_ERROR_INVALID_VALUE;
  if (std::max({shape.Width, shape.Height, shape.Depth}) > most) return CUDA_ERROR_INVALID_VALUE;
  if ((shape.Flags & ~known) != 0 || number_bytes(shape.Format) == 0) return CUDA_ERROR_NOT_SUPPORTED;
  return CUDA_SUCCESS;
}

}  // namespace firebreak::softgpu::driver
