// SPDX-License-Identifier: Apache-2.0
/// Faults of the device itself. They would end everybody's work on a real one, so only the software GPU has
/// them: its library exports the function that raises them, and a real driver's does not.
#pragma once

#include "inject/kind.h"

namespace firebreak::inject {

/// Unsupported where the driver is not the software GPU's.
Prepared prepare_device_fault(const cuda::ContextView& context, int xid);

/// The same as a Kind's `prepare`.
template <int xid>
Prepared prepare_device_fault(const cuda::Driver&, const cuda::ContextView& context, const Options&) {
  return prepare_device_fault(context, xid);
}

}  // namespace firebreak::inject
