// SPDX-License-Identifier: Apache-2.0
#include "program/virtual/inside_call.h"

#include "program/virtual/gate.h"

namespace firebreak::virtual_driver {

void InsideCall::forget(CallsOfThread& calls) {
  os::restore_cancellation(calls.cancellation_before);
  calls = {};
  Gate::forget_own_calls();
}

}  // namespace firebreak::virtual_driver
