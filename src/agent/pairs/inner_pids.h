// SPDX-License-Identifier: Apache-2.0
/// Whoever asks from a PID namespace of its own, as everybody in a container does, names processes by the
/// numbers that they have there.
#pragma once

#include <sys/types.h>

#include "ground/base/result.h"
#include "ground/os/kernel.h"
#include "shared/abi/wire.h"

namespace firebreak::agent {

/// `asker`: as we see it. A message that names itself or a child of it has our number for that afterwards.
/// NotFound: it has no such child. Who is in our namespace is taken at its word.
Status translate_pids(os::Kernel& kernel, pid_t asker, abi::Message& message);

}  // namespace firebreak::agent
