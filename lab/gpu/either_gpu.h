// SPDX-License-Identifier: Apache-2.0
/// Chooses a laboratory's GPU: one that is not there is no reason not to show anything.
#pragma once

#include <string>

#include "ground/platform/platform.h"

namespace firebreak::gpu {

/// Chooses as platform::choose(), but FIREBREAK_GPU or `wanted` may say "auto" as well, and that is the
/// default: the real GPU where it is there, otherwise the software one.
Result<platform::Platform> choose_either(const std::string& state_directory = {},
                                         const std::string& wanted = {});

}  // namespace firebreak::gpu
