// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "ground/os/kernel.h"

namespace firebreak::watch {

/// How a process that is no child of ours ended, once its pidfd says that it has; empty where that cannot be
/// known. Its pidfd tells since Linux 6.15, once it is reaped; procfs before that, of an end that was no
/// success.
std::optional<os::ExitStatus> exit_of_stranger(os::Kernel& kernel, const os::Fd& pidfd, pid_t pid);

}  // namespace firebreak::watch
