// SPDX-License-Identifier: Apache-2.0
#include "program/cuda/backend.h"

namespace firebreak::cuda {
namespace {

template <class Function>
Function find_or_missing(void* library, FindSymbol find, const char* symbol) {
  void* const found = find(library, symbol);
  return found == nullptr ? &Missing<Function>::call : reinterpret_cast<Function>(found);
}

}  // namespace

Backend Backend::from(void* library, FindSymbol find) {
  Backend made{};
#define CUDA_PER_THREAD_same(symbol)
#define CUDA_PER_THREAD_ptsz(symbol) \
  made.symbol##_ptsz = find_or_missing<PFN_##symbol>(library, find, #symbol "_ptsz");
#define CUDA_PER_THREAD_ptds(symbol) \
  made.symbol##_ptds = find_or_missing<PFN_##symbol>(library, find, #symbol "_ptds");
#define CUDA_FUNCTION(symbol, name, since, per_thread, purpose, ...)   \
  made.symbol = find_or_missing<PFN_##symbol>(library, find, #symbol); \
  CUDA_PER_THREAD_##per_thread(symbol)
#include "shared/abi/cuda_api.def"
#undef CUDA_FUNCTION
#undef CUDA_PER_THREAD_same
#undef CUDA_PER_THREAD_ptsz
#undef CUDA_PER_THREAD_ptds
  return made;
}

}  // namespace firebreak::cuda
