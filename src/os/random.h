// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace firebreak::os {

/// 32 hexadecimal digits that nobody can guess, from the kernel.
Result<std::string> random_token();

}  // namespace firebreak::os
