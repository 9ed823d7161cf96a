// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "agent/domains/mps/client_limits.h"

namespace firebreak::agent {

/// A tenant's process in one of its roles; `pid` 0: nobody. A pid that has another start time is another
/// process.
struct Member {
  pid_t pid = 0;
  std::string start_time;  ///< start time as /proc/PID/stat tells it (os::start_time)
  std::string image;       ///< os::image_of when it joined: what a child of its fork() has as well
  std::string domain;      ///< the MPS domain that it was placed in
  mps::ClientLimits limits = {};
  /// The number of its last request that was carried out: asked again by another agent, it is not done again.
  std::uint64_t done = 0;
  std::string attempt = {};      ///< attempt of its join (abi::Join)
  std::uint64_t connection = 0;  ///< 0: has not joined, or hung up; another one under the next agent
  friend bool operator==(const Member&, const Member&) = default;
};

/// Returns the number by which the shared page names it: of those that live, nobody else has that one.
inline std::uint32_t member_number(const Member& member) { return static_cast<std::uint32_t>(member.pid); }

}  // namespace firebreak::agent
