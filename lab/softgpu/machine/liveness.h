// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

namespace firebreak::softgpu {

/// True when the process can still do something: zombies cannot.
bool is_alive(pid_t pid);

}  // namespace firebreak::softgpu
