// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "os/fd.h"

namespace firebreak::os {

/// Another descriptor of the same open file, close-on-exec. ResourceExhausted: there is none left.
Result<Fd> duplicate(int descriptor);

}  // namespace firebreak::os
