// SPDX-License-Identifier: Apache-2.0
/// Copies of rows and layers, between the GPU's memory, the host's and arrays.
#pragma once

#include <vector>

#include "shared/abi/cuda_arrays.h"
#include "softgpu/driver/copy.h"

namespace firebreak::softgpu::driver {

/// One copy a layer. INVALID_VALUE, INVALID_HANDLE: it reaches out of what it names, or that is none.
Answer<std::vector<CopyRequest>> layers_of(Process& process, const CUDA_MEMCPY3D& copy);

/// Returns the box of a plain copy.
CUDA_MEMCPY3D box_of(const CopyPointer& destination, const CopyPointer& source, std::size_t size_bytes);
CUDA_MEMCPY3D box_of(const CUDA_MEMCPY2D& copy);

}  // namespace firebreak::softgpu::driver
