// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ground/os/fd.h"

namespace firebreak::os {

/// Whether a pipe, by its reading end, has no room left, so that whoever writes into it stands still. What
/// waits in it stays there. Never waits. False also where it cannot be seen.
bool is_pipe_full(const Fd& reading);

}  // namespace firebreak::os
