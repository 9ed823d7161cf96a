// SPDX-License-Identifier: Apache-2.0
/// The functions that programs reach in place of the driver's, under the driver's own names: programs that
/// link against libcuda find them first, all others are given them by cuGetProcAddress and dlsym
/// (replacements.h). All of them are made from the table of the driver's functions and from hooks.def.
#include <array>

#include "program/guard/preload/counting.h"
#include "program/guard/preload/hooks.h"
#include "program/guard/preload/process_driver.h"
#include "program/guard/preload/replacements.h"
#include "program/virtual/inside_call.h"
#include "shared/abi/cuda_api.h"
#include "shared/abi/cuda_driver_prototypes.h"

using firebreak::abi::CudaPurpose;
using firebreak::guard::Call;
using firebreak::guard::ProcessDriver;

// Programs that link against libcuda find these, and the driver behind them may be the virtual one.
#define GUARD_DEFINE_none(symbol, per_thread, purpose, ...) \
  GUARD_PASSED_FUNCTION(symbol, __VA_ARGS__)                \
  GUARD_PASSED_##per_thread(symbol, __VA_ARGS__)
#define GUARD_DEFINE_left(...) GUARD_DEFINE_none(__VA_ARGS__)
#define GUARD_PASSED_same(...)
#define GUARD_PASSED_ptsz(symbol, ...) GUARD_PASSED_FUNCTION(symbol##_ptsz, __VA_ARGS__)
#define GUARD_PASSED_ptds(symbol, ...) GUARD_PASSED_FUNCTION(symbol##_ptds, __VA_ARGS__)
#define GUARD_PASSED_FUNCTION(exported, ...)                                 \
  CUresult exported(CUDA_PARAMETERS(__VA_ARGS__)) {                          \
    return ProcessDriver::functions().exported(CUDA_ARGUMENTS(__VA_ARGS__)); \
  }

#define GUARD_DEFINE_own(symbol, per_thread, purpose, ...) \
  GUARD_OWN_FUNCTION(symbol, symbol, false, __VA_ARGS__)   \
  GUARD_OWN_##per_thread(symbol, __VA_ARGS__)
#define GUARD_OWN_same(...)
#define GUARD_OWN_ptsz(symbol, ...) GUARD_OWN_FUNCTION(symbol##_ptsz, symbol, true, __VA_ARGS__)
#define GUARD_OWN_ptds(symbol, ...) GUARD_OWN_FUNCTION(symbol##_ptds, symbol, true, __VA_ARGS__)
#define GUARD_OWN_FUNCTION(exported, symbol, is_per_thread, ...)                                          \
  CUresult exported(CUDA_PARAMETERS(__VA_ARGS__)) {                                                       \
    const firebreak::virtual_driver::InsideCall inside_;                                                  \
    return firebreak::guard::hooks::symbol(Call{ProcessDriver::functions(), is_per_thread} __VA_OPT__(, ) \
                                               CUDA_ARGUMENTS(__VA_ARGS__));                              \
  }

#define GUARD_DEFINE_counted(symbol, per_thread, purpose, ...) \
  GUARD_COUNTED_FUNCTION(symbol, false, purpose, __VA_ARGS__)  \
  GUARD_COUNTED_##per_thread(symbol, purpose, __VA_ARGS__)
#define GUARD_COUNTED_same(...)
#define GUARD_COUNTED_ptsz(symbol, ...) GUARD_COUNTED_FUNCTION(symbol##_ptsz, true, __VA_ARGS__)
#define GUARD_COUNTED_ptds(symbol, ...) GUARD_COUNTED_FUNCTION(symbol##_ptds, true, __VA_ARGS__)
#define GUARD_COUNTED_FUNCTION(exported, is_per_thread, purpose, ...)                               \
  CUresult exported(CUDA_PARAMETERS(__VA_ARGS__)) {                                                 \
    const firebreak::virtual_driver::InsideCall inside_;                                            \
    return firebreak::guard::count<is_per_thread, CudaPurpose::purpose>(                            \
        ProcessDriver::functions().exported, #exported __VA_OPT__(, ) CUDA_ARGUMENTS(__VA_ARGS__)); \
  }

#define CUDA_FUNCTION(symbol, name, since, per_thread, purpose, ...) \
  GUARD_JOINED(GUARD_DEFINE_, GUARD_WAY(symbol, purpose))(symbol, per_thread, purpose, __VA_ARGS__)
#include "shared/abi/cuda_api.def"
#undef CUDA_FUNCTION

namespace firebreak::guard {
namespace {

template <class Function>
void* untyped(Function* function) {
  return reinterpret_cast<void*>(function);
}

#define GUARD_ROW_none(...) Replacement{},
#define GUARD_ROW_left(...) Replacement{},
#define GUARD_ROW_own(symbol, per_thread) GUARD_ROW_##per_thread(symbol)
#define GUARD_ROW_counted(symbol, per_thread) GUARD_ROW_##per_thread(symbol)
#define GUARD_ROW_same(symbol) Replacement{untyped(&::symbol), nullptr},
#define GUARD_ROW_ptsz(symbol) Replacement{untyped(&::symbol), untyped(&::symbol##_ptsz)},
#define GUARD_ROW_ptds(symbol) Replacement{untyped(&::symbol), untyped(&::symbol##_ptds)},

}  // namespace

std::span<const Replacement> replacements() {
  static const std::array all{
#define CUDA_FUNCTION(symbol, name, since, per_thread, purpose, ...) \
  GUARD_JOINED(GUARD_ROW_, GUARD_WAY(symbol, purpose))(symbol, per_thread)
#include "shared/abi/cuda_api.def"
#undef CUDA_FUNCTION
  };
  return all;
}

}  // namespace firebreak::guard
