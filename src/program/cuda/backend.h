// SPDX-License-Identifier: Apache-2.0
/// One loaded instance of the driver: all its functions, each under the name of its symbol. A process may
/// have several, so who calls the driver is given the one to call.
#pragma once

#include "shared/abi/cuda_driver_functions.h"

namespace firebreak::cuda {

/// This tells where a symbol is, or null. It is called while the backend is made, on the caller's thread.
using FindSymbol = void* (*)(void* library, const char* symbol);

/// Constant once made; any thread may call. Owns nothing: the library has to stay loaded.
struct Backend {
  /// The table has every function that `find` knows in `library`. One that it does not know answers
  /// CUDA_ERROR_NOT_FOUND, so that none is null.
  static Backend from(void* library, FindSymbol find);

#define CUDA_MEMBER(exported, symbol, ...) PFN_##symbol exported;
#define CUDA_FUNCTION(symbol, name, since, per_thread, purpose, ...) \
  CUDA_SYMBOLS(per_thread, CUDA_MEMBER, symbol)
#include "shared/abi/cuda_api.def"
#undef CUDA_FUNCTION
#undef CUDA_MEMBER
};

/// This stands where the driver has no such function.
template <class Function>
struct Missing;
template <class... Arguments>
struct Missing<CUresult (*)(Arguments...)> {
  static CUresult call(Arguments...) { return CUDA_ERROR_NOT_FOUND; }
};

/// This tells whether the driver has that function.
template <class Function>
bool is_there(Function function) {
  return function != &Missing<Function>::call;
}

}  // namespace firebreak::cuda
