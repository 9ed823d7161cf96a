// SPDX-License-Identifier: Apache-2.0
/// Ending this process in the ways that termination faults want.
#pragma once

#include "ground/os/kernel.h"
#include "inject/kind.h"

namespace firebreak::inject {

/// Returns only where it failed.
void end_process(os::Kernel& kernel, Ending ending);

}  // namespace firebreak::inject
