// SPDX-License-Identifier: Apache-2.0
/// The guard's own functions in place of the driver's (hooks.def), and what each is given. A hook asks the
/// driver through its `call`, never otherwise: a process may have several drivers. Nothing is thrown across
/// one and none ends the process.
#pragma once

#include "program/cuda/backend.h"
#include "program/guard/completion_markers.h"
#include "program/guard/guard.h"
#include "shared/abi/cuda_api_rows.h"

#include "program/guard/preload/hooks.def"

/// The result is own, counted, left or none.
#define GUARD_WAY(symbol, purpose) CUDA_SECOND(GUARD_HOOK_##symbol, GUARD_BY_##purpose, "", ~)
#define GUARD_REASON(symbol, purpose) CUDA_THIRD(GUARD_HOOK_##symbol, GUARD_BY_##purpose, "", ~)

namespace firebreak::guard {

/// The arguments of a hook besides the function's own parameters.
struct Call {
  const cuda::Backend& driver;
  bool per_thread = false;  ///< a stream that is null means the calling thread's own

  /// Returns the one that was called, of a function and the one behind its per-thread symbol.
  template <class Function>
  Function which(Function plain, Function own) const {
    return per_thread ? own : plain;
  }

  /// The guard, up by now where there is a context to be guarded. Null: the call is the driver's.
  Guard* guard() const;
  /// The guard, where it is up.
  Guard* guard_if_on() const;
  /// Null: nothing is counted.
  CompletionMarkers* markers() const;
  /// Now the process has what the guard ranges needs.
  void context_made(CUcontext context) const;
};

// Those of the table's own way are declared in `hooks`, so that a function there needs its row.
#define GUARD_SPACE_own ~, hooks
#define CUDA_FUNCTION(symbol, name, since, per_thread, purpose, ...)                          \
  namespace CUDA_SECOND(CUDA_JOINED(GUARD_SPACE_, GUARD_WAY(symbol, purpose)), not_ours, ~) { \
    CUresult symbol(const Call& call __VA_OPT__(, ) CUDA_PARAMETERS(__VA_ARGS__));            \
  }
#include "shared/abi/cuda_api.def"
#undef CUDA_FUNCTION
#undef GUARD_SPACE_own

}  // namespace firebreak::guard
