// SPDX-License-Identifier: Apache-2.0
/// Summaries and decisions in words, for people.
#pragma once

#include <string>

#include "kernels/access/decision.h"
#include "kernels/access/summary.h"

namespace firebreak::access {

/// "idempotent", "not idempotent", "unknown"
const char* to_string(Verdict verdict);

/// One line: the verdict, and which instruction and which operand are the reason.
std::string describe(const KernelSummary& summary, const Decision& decision);

/// Several lines, each ended: all accesses of the kernel, and on what its idempotency depends.
std::string explain(const KernelSummary& summary);

}  // namespace firebreak::access
