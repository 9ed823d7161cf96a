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
#define CUDA_FIND(exported, symbol, ...) \
  made.exported = find_or_missing<PFN_##symbol>(library, find, #exported);
#define CUDA_FUNCTION(symbol, name, since, per_thread, purpose, ...) \
  CUDA_SYMBOLS(per_thread, CUDA_FIND, symbol)
#include "shared/abi/cuda_api.def"
#undef CUDA_FUNCTION
#undef CUDA_FIND
  return made;
}

}  // namespace firebreak::cuda
