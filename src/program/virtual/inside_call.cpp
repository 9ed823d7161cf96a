// SPDX-License-Identifier: Apache-2.0
#include "program/virtual/inside_call.h"

#include <signal.h>

#include "ground/os/ask_in_handler.h"
#include "ground/os/self.h"
#include "program/virtual/gate.h"

namespace firebreak::virtual_driver {

void InsideCall::forget(CallsOfThread& calls) {
  os::restore_cancellation(calls.cancellation_before);
  calls = {};
  Gate::forget_own_calls();
}

void InsideCall::stand_where_it_ends() {
  if (ending_.load(std::memory_order_relaxed) == os::own_pid()) stand_until_ended();
}

void InsideCall::stand_until_ended() {
  constexpr int patience_ms = 10'000;  // the agent waits for faults to pass, and for MPS, not so long
  os::stand_until_ended_by(SIGTERM, patience_ms);
}

}  // namespace firebreak::virtual_driver
