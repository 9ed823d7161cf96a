// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "program/cuda/context.h"

namespace firebreak::inject {

/// Makes `context` current, launches `count` kernels that do nothing, and waits for them: what a fault at a
/// later launch has before it.
Status launch_harmless(const cuda::ContextView& context, std::uint64_t count);

}  // namespace firebreak::inject
