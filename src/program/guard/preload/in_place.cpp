// SPDX-License-Identifier: Apache-2.0
/// The functions that programs reach in place of the driver's, under the driver's own names: programs that
/// link against libcuda find them first, all others are given them by cuGetProcAddress and dlsym
/// (replacements.h). All of them are made from the table of the driver's functions and from hooks.def.
#include <array>

#include "program/guard/preload/counting.h"
#include "program/guard/preload/hooks.h"
#include "program/guard/preload/process_driver.h"
#include "program/guard/preload/replacements.h"
#include "program/guard/preload/ways.h"
#include "program/virtual/inside_call.h"
#include "shared/abi/cuda_api.h"
#include "shared/abi/cuda_driver_prototypes.h"

using firebreak::abi::CudaPurpose;
using firebreak::guard::Call;
using firebreak::guard::ProcessDriver;

// Programs that link against libcuda find these, and the driver behind them may be the virtual one.
#define GUARD_DEFINE_none(exported, symbol, is_per_thread, purpose, ...)     \
  CUresult exported(CUDA_PARAMETERS(__VA_ARGS__)) {                          \
    return ProcessDriver::functions().exported(CUDA_ARGUMENTS(__VA_ARGS__)); \
  }
#define GUARD_DEFINE_left GUARD_DEFINE_none

#define GUARD_DEFINE_own(exported, symbol, is_per_thread, purpose, ...)                                   \
  CUresult exported(CUDA_PARAMETERS(__VA_ARGS__)) {                                                       \
    const firebreak::virtual_driver::InsideCall inside_;                                                  \
    return firebreak::guard::hooks::symbol(Call{ProcessDriver::functions(), is_per_thread} __VA_OPT__(, ) \
                                               CUDA_ARGUMENTS(__VA_ARGS__));                              \
  }

#define GUARD_DEFINE_counted(exported, symbol, is_per_thread, purpose, ...)                         \
  CUresult exported(CUDA_PARAMETERS(__VA_ARGS__)) {                                                 \
    const firebreak::virtual_driver::InsideCall inside_;                                            \
    return firebreak::guard::count<is_per_thread, CudaPurpose::purpose>(                            \
        ProcessDriver::functions().exported, #exported __VA_OPT__(, ) CUDA_ARGUMENTS(__VA_ARGS__)); \
  }

#define CUDA_FUNCTION(symbol, name, since, per_thread, purpose, ...)                                \
  CUDA_SYMBOLS(per_thread, CUDA_JOINED(GUARD_DEFINE_, GUARD_WAY(symbol, purpose)), symbol, purpose, \
               __VA_ARGS__)
#include "shared/abi/cuda_api.def"
#undef CUDA_FUNCTION

namespace firebreak::guard {
namespace {

template <class Function>
void* untyped(Function* function) {
  return reinterpret_cast<void*>(function);
}

/// Nothing where the driver's own function stays.
Replacement replaced(const Way& way, const Replacement& with) {
  return way.is_hooked() ? with : Replacement{};
}

}  // namespace

std::span<const Replacement> replacements() {
  static const std::array all{
#define GUARD_ADDRESS(exported, ...) untyped(&::exported),
#define CUDA_FUNCTION(symbol, name, since, per_thread, purpose, ...) \
  replaced(Way{Way::Kind::GUARD_WAY(symbol, purpose), {}}, {CUDA_SYMBOLS(per_thread, GUARD_ADDRESS, symbol)}),
#include "shared/abi/cuda_api.def"
#undef CUDA_FUNCTION
  };
  return all;
}

}  // namespace firebreak::guard
