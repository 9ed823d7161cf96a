// SPDX-License-Identifier: Apache-2.0
/// Hazards: whether a launch may be the one that ended its GPU's work, or takes part in what others do
/// meanwhile. Where a domain has died nobody says whose kernel it was. A program that does launches again
/// there must not do the culprit's again: it would end the next domain, and those in it. So only what cannot
/// have been it is done.
#pragma once

#include <string>

#include "kernels/access/decision.h"
#include "kernels/access/launch.h"
#include "kernels/access/summary.h"
#include "kernels/ptx/ir.h"

namespace firebreak::access {

/// Finds, for any launch of that kernel, what of it may raise an exception, or waits for others. Empty:
/// nothing but where it goes in global memory. One line. Such are: a trap, a breakpoint, a call, an
/// instruction that is not known, an address in shared or local memory that is computed or is outside of its
/// variable, and accesses that are volatile or ordered with others'.
std::string find_kernel_hazard(const ptx::Module& module, const ptx::Function& kernel);

/// Finds, for that launch, the above and an access that is not shown to stay in the process's memory, or that
/// may be misaligned. Empty: none. `launch.memory` is all that the process has.
std::string find_hazard(const KernelSummary& summary, const LaunchArguments& launch,
                        DecisionWorkspace& workspace);

}  // namespace firebreak::access
