// SPDX-License-Identifier: Apache-2.0
/// Memory in rows and layers that programs know by a handle alone. Here it is linear; nobody knows how the
/// hardware lays it out.
#pragma once

#include <cstdint>
#include <vector>

#include "shared/abi/cuda_arrays.h"

namespace firebreak::softgpu::driver {

/// Constant once made; thread safe.
struct Array {
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  CUcontext context = nullptr;
  std::uint64_t address = 0;
  bool is_level = false;  ///< a level of a mipmapped array, which has the memory

  std::uint64_t row_bytes() const;
  std::uint64_t rows() const;
  std::uint64_t layers() const;
  std::uint64_t size_bytes() const { return row_bytes() * rows() * layers(); }
};

/// A mipmapped array: each level half as large as the one before; in one piece of memory.
struct MipmappedArray {
  CUcontext context = nullptr;
  std::uint64_t address = 0;
  std::vector<CUarray> levels;
};

/// INVALID_VALUE: no such array can be. NOT_SUPPORTED: it could be on hardware.
CUresult check_shape(const CUDA_ARRAY3D_DESCRIPTOR& shape);

}  // namespace firebreak::softgpu::driver
