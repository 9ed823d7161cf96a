// SPDX-License-Identifier: Apache-2.0
/// Kernels of statements of all kinds, in loops and branches inside each other.
#pragma once

#include <string>

#include "idempotency/kernel_text.h"

namespace firebreak::idempotency {

std::string mixed_kernel(KernelText& text);

}  // namespace firebreak::idempotency
