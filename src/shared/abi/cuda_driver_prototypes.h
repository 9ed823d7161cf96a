// SPDX-License-Identifier: Apache-2.0
/// Declares every function of cuda_api.def as the driver does, so that a stand-in whose definition differs
/// does not compile. The functions are declared as exported; include this only where they are defined.
#pragma once

#include "shared/abi/cuda_driver_functions.h"

#pragma GCC visibility push(default)
extern "C" {
#define CUDA_FUNCTION(symbol, name, since, per_thread, purpose, ...) \
  CUresult symbol(CUDA_PARAMETERS(__VA_ARGS__));
#include "shared/abi/cuda_api.def"
#undef CUDA_FUNCTION

// The same with the calling thread's own default stream.
#define CUDA_PER_THREAD_same(symbol, ...)
#define CUDA_PER_THREAD_ptsz(symbol, ...) CUresult symbol##_ptsz(CUDA_PARAMETERS(__VA_ARGS__));
#define CUDA_PER_THREAD_ptds(symbol, ...) CUresult symbol##_ptds(CUDA_PARAMETERS(__VA_ARGS__));
#define CUDA_FUNCTION(symbol, name, since, per_thread, purpose, ...) \
  CUDA_PER_THREAD_##per_thread(symbol, __VA_ARGS__)
#include "shared/abi/cuda_api.def"
#undef CUDA_FUNCTION
#undef CUDA_PER_THREAD_same
#undef CUDA_PER_THREAD_ptsz
#undef CUDA_PER_THREAD_ptds
}
#pragma GCC visibility pop
