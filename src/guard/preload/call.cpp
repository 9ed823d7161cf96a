// SPDX-License-Identifier: Apache-2.0
#include "guard/preload/hooks.h"
#include "guard/preload/process_guard.h"

namespace firebreak::guard {

Guard* Call::guard() const {
  ProcessGuard* const process = ProcessGuard::get();
  if (process == nullptr) return nullptr;
  process->guard().start_within_context();
  return &process->guard();
}

Guard* Call::guard_if_on() const {
  ProcessGuard* const process = ProcessGuard::get();
  return process == nullptr || !process->guard().is_on() ? nullptr : &process->guard();
}

CompletionMarkers* Call::markers() const { return markers_of_process(); }

void Call::context_made(CUcontext context) const {
  ProcessGuard* const process = ProcessGuard::get();
  if (process == nullptr) return;
  process->guard().start();
  if (process->markers() != nullptr) process->markers()->note_context(context);
}

}  // namespace firebreak::guard
