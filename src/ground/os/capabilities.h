// SPDX-License-Identifier: Apache-2.0
/// The parts of root's rights (capabilities(7)) that the calling thread has, and how they are given up. They
/// are each thread's own: call these before there are other threads.
#pragma once

#include <sys/types.h>

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ground/base/result.h"

namespace firebreak::os {

/// Numbers are Linux's own.
enum class Capability : unsigned {
  Chown = 0,
  DacOverride = 1,
  DacReadSearch = 2,
  Kill = 5,
  SetPcap = 8,
  SysPtrace = 19,
  SysAdmin = 21,
  SysNice = 23,
  Syslog = 34
};

/// True when this thread may use the capability.
bool has_capability(Capability which);

/// Gives up all capabilities but these, for good where this thread runs no other program.
Status give_up_all_capabilities_but(std::span<const Capability> kept);

/// Given up for good: it goes from the permitted, effective, inheritable and ambient set. So that no program
/// that is started gets it back, it also goes from the bounding set. Where that may not be changed (it needs
/// CAP_SETPCAP), root sets no_new_privs instead, and everybody else leaves it at that.
/// `is_well_without` is asked first, while it is not in the effective set; on false everything is put back,
/// and PermissionDenied is the answer.
Status give_up_capability(Capability which, const std::function<bool()>& is_well_without);

struct User {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups = {};  ///< groups besides `gid`
};

/// Finds a user by name or number, with no further groups. InvalidArgument: there is none, or it is root.
Result<User> user_named(const std::string& name);

/// Makes this process that user's for good, with no groups but those, and with these capabilities alone.
/// Programs that it starts get no more (no_new_privs), and not these either. The caller is root, and has no
/// other threads. After an error it is not known what the process is: it has to end.
Status become_user(const User& user, std::span<const Capability> kept);

/// Lets this process and those that it starts be woken promptly (run_as_soon_as_woken) without CAP_SYS_NICE,
/// from now on. PermissionDenied without CAP_SYS_RESOURCE.
Status allow_prompt_waking();

}  // namespace firebreak::os
