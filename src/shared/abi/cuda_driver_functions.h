// SPDX-License-Identifier: Apache-2.0
/// The types of the driver's functions, as pointers, named after the symbol that the library exports:
/// `PFN_cuMemAlloc_v2` is a pointer to `cuMemAlloc_v2`. All of them come from cuda_api.def.
#pragma once

#include "shared/abi/cuda_api_rows.h"
#include "shared/abi/cuda_driver.h"
#include "shared/abi/cuda_opaque_types.h"

#define CUDA_FUNCTION(symbol, name, since, per_thread, purpose, ...) \
  using PFN_##symbol = CUresult (*)(CUDA_TYPES(__VA_ARGS__));
#include "shared/abi/cuda_api.def"
#undef CUDA_FUNCTION
