// SPDX-License-Identifier: Apache-2.0
/// Entry points: whatever else the table of the driver's functions has, so that every program loads. A
/// function that no other file defines answers CUDA_ERROR_NOT_SUPPORTED: these here are weak. One with _ptsz
/// or _ptds behind its name is the plain one, called by somebody whose default stream is the thread's own.
#include "softgpu/driver/entry.h"

using firebreak::softgpu::driver::PerThreadDefault;

extern "C" {

#define CUDA_FUNCTION(symbol, name, since, per_thread, purpose, ...) \
  [[gnu::weak]] CUresult symbol(CUDA_TYPES(__VA_ARGS__)) { return CUDA_ERROR_NOT_SUPPORTED; }
#include "shared/abi/cuda_api.def"
#undef CUDA_FUNCTION

#define CUDA_PER_THREAD(exported, symbol, ...)      \
  CUresult exported(CUDA_PARAMETERS(__VA_ARGS__)) { \
    const PerThreadDefault in_this_call;            \
    return symbol(CUDA_ARGUMENTS(__VA_ARGS__));     \
  }
#define CUDA_PER_THREAD_same(symbol, ...)
#define CUDA_PER_THREAD_ptsz(symbol, ...) CUDA_PER_THREAD(symbol##_ptsz, symbol, __VA_ARGS__)
#define CUDA_PER_THREAD_ptds(symbol, ...) CUDA_PER_THREAD(symbol##_ptds, symbol, __VA_ARGS__)
#define CUDA_FUNCTION(symbol, name, since, per_thread, purpose, ...) \
  CUDA_PER_THREAD_##per_thread(symbol, __VA_ARGS__)
#include "shared/abi/cuda_api.def"
#undef CUDA_FUNCTION

}  // extern "C"
