// SPDX-License-Identifier: Apache-2.0
/// Declares every function of cuda_api.def as the driver does, so that a stand-in whose definition differs
/// does not compile. The functions are declared as exported; include this only where they are defined.
#pragma once

#include "shared/abi/cuda_driver_functions.h"

#pragma GCC visibility push(default)
extern "C" {
#define CUDA_PROTOTYPE(exported, symbol, is_per_thread, ...) CUresult exported(CUDA_PARAMETERS(__VA_ARGS__));
#define CUDA_FUNCTION(symbol, name, since, per_thread, purpose, ...) \
  CUDA_SYMBOLS(per_thread, CUDA_PROTOTYPE, symbol, __VA_ARGS__)
#include "shared/abi/cuda_api.def"
#undef CUDA_FUNCTION
#undef CUDA_PROTOTYPE
}
#pragma GCC visibility pop
