// SPDX-License-Identifier: Apache-2.0
/// The agent as a user of its own: what it has root do beforehand, and what it is from then on
/// (docs/security.md).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/command_line.h"
#include "agent/privileged_helper.h"
#include "agent/server.h"
#include "base/clock.h"
#include "base/result.h"
#include "os/capabilities.h"
#include "os/file.h"
#include "os/logs.h"

namespace firebreak::agent {

/// Of an agent that was root's to begin with.
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
