// SPDX-License-Identifier: Apache-2.0
/// The agent as a user of its own: what it has root do beforehand, and what it is from then on
/// (docs/how/security.md).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/loop/server.h"
#include "agent/root/privileged_helper.h"
#include "agent/settings/command_line.h"
#include "ground/base/clock.h"
#include "ground/base/result.h"
#include "ground/os/capabilities.h"
#include "ground/os/file.h"
#include "ground/os/logs.h"

namespace firebreak::agent {

/// The user of an agent that was root's to begin with.
struct OwnUser {
  std::shared_ptr<PrivilegedHelper> helper;  ///< has the lock of the directory
  Result<os::KernelLogBell> bell;
};

/// Starts the helper, makes the directory the user's, also where an agent of root's was there before, and
/// becomes that user. For root, before there are other threads. `arguments`: of this program. After an error
/// the process has to end.
Result<OwnUser> become_own_user(const CommandLine& options, const Sockets& sockets,
                                const std::vector<std::string>& arguments);

/// Waits so long for who was just ended.
Result<os::FileLock> take_directory(const std::string& directory, Milliseconds longest);

}  // namespace firebreak::agent
