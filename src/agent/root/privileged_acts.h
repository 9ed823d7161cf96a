// SPDX-License-Identifier: Apache-2.0
/// The acts of the process that stays root's (agent/root/privileged_helper.h), on this machine.
#pragma once

#include "agent/settings/command_line.h"
#include "ground/base/result.h"
#include "ground/os/socket.h"

namespace firebreak::agent {

/// `options`: those of the agent that it works for. `lock`: of its directory. Returns when nobody has the
/// other end any more.
Status be_privileged_helper(const CommandLine& options, os::Socket& asker, os::Fd lock);

}  // namespace firebreak::agent
