// SPDX-License-Identifier: Apache-2.0
/// The guard's own functions in place of the driver's (hooks.def), and what each is given. A hook asks the
/// driver through its `call`, never otherwise: a process may have several drivers. Nothing is thrown across
/// one and none ends the process.
#pragma once

#include "program/cuda/backend.h"
#include "program/guard/completion_markers.h"
#include "program/guard/guard.h"

// These read hooks.def: a way, and its reason.
#define GUARD_OWN ~, own, ""
#define GUARD_COUNTED ~, counted, ""
#define GUARD_LEFT(reason) ~, left, reason
#include "program/guard/preload/hooks.def"

// The way of functions without a row, by their purpose.
#define GUARD_BY_Creates none
#define GUARD_BY_Destroys none
#define GUARD_BY_Configures none
#define GUARD_BY_Builds none
#define GUARD_BY_Exports none
#define GUARD_BY_Maps none
#define GUARD_BY_Launches counted
#define GUARD_BY_Copies counted
#define GUARD_BY_Fills counted
#define GUARD_BY_Enqueues counted
#define GUARD_BY_Captures none
#define GUARD_BY_Synchronizes none
#define GUARD_BY_Queries none
#define GUARD_BY_Other none

// A row's macro begins with something to be skipped; a name that is none is itself skipped.
#define GUARD_SECOND(...) GUARD_SECOND_OF(__VA_ARGS__)
#define GUARD_SECOND_OF(first, second, ...) second
#define GUARD_THIRD(...) GUARD_THIRD_OF(__VA_ARGS__)
#define GUARD_THIRD_OF(first, second, third, ...) third
/// The result is own, counted, left or none.
#define GUARD_WAY(symbol, purpose) GUARD_SECOND(GUARD_HOOK_##symbol, GUARD_BY_##purpose, "", ~)
#define GUARD_REASON(symbol, purpose) GUARD_THIRD(GUARD_HOOK_##symbol, GUARD_BY_##purpose, "", ~)

#define GUARD_JOINED(begin, end) GUARD_JOINED_OF(begin, end)
#define GUARD_JOINED_OF(begin, end) begin##end

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

namespace hooks {

#define GUARD_DECLARE_none(...)
#define GUARD_DECLARE_left(...)
#define GUARD_DECLARE_counted(...)
#define GUARD_DECLARE_own(symbol, ...) \
  CUresult symbol(const Call& call __VA_OPT__(, ) CUDA_PARAMETERS(__VA_ARGS__));
#define CUDA_FUNCTION(symbol, name, since, per_thread, purpose, ...) \
  GUARD_JOINED(GUARD_DECLARE_, GUARD_WAY(symbol, purpose))(symbol, __VA_ARGS__)
#include "shared/abi/cuda_api.def"
#undef CUDA_FUNCTION
#undef GUARD_DECLARE_none
#undef GUARD_DECLARE_left
#undef GUARD_DECLARE_counted
#undef GUARD_DECLARE_own

}  // namespace hooks
}  // namespace firebreak::guard
