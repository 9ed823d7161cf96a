// SPDX-License-Identifier: Apache-2.0
/// The probe of the guard ranges: it lays one and has the GPU stray into it
/// (shared/guard_page/probe_program.h).
#pragma once

#include <string>

#include "shared/guard_page/probe_result.h"

namespace firebreak::guard {

/// Tries guard ranges in this process, which has no use of the GPU afterwards. `cuda_library` as for
/// cuda::Driver::open.
ProbeResult probe_guard_ranges(os::Kernel& kernel, const std::string& cuda_library);

}  // namespace firebreak::guard
