// SPDX-License-Identifier: Apache-2.0
/// What libcuda gives out by cuGetExportTable and NVIDIA does not document, as far as a library that programs
/// use depends on it. Measured: H200, driver 580.159.04, and the cuFFT 12 that comes with PyTorch 2.11.
#pragma once

#include <cstddef>
#include <cstring>

#include "abi/cuda_driver.h"

namespace firebreak::abi {

/// Its first word is its size in bytes, 0x318 in that driver. What follows are functions. cuFFT and cuBLAS
/// ask for it.
inline constexpr CUuuid module_table_id{
    {0x6e, 0x16, 0x3f, -0x42, -0x47, 0x58, 0x44, 0x4d, -0x7d, 0x5c, -0x1e, -0x7e, -0x51, -0xf, -0x67, 0x1e}};

/// Calls `take` for each function of the module, which need not be of that context, nor of that driver. 1:
/// done. cuFFT takes the kernels of code whose kernels' names it does not know, since each such module has
/// one.
using CudaEachFunction = int (*)(CUcontext context, CUmodule module,
                                 void (*take)(void* data, CUfunction function), void* data);
inline constexpr std::size_t module_table_each_function = 7;

inline bool is_module_table(const CUuuid& id) {
  return std::memcmp(id.bytes, module_table_id.bytes, sizeof id.bytes) == 0;
}

}  // namespace firebreak::abi
