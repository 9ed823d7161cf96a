// SPDX-License-Identifier: Apache-2.0
/// Processes that cost next to nothing, for a fuzzer that needs peers of several users in each of its runs.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "ground/os/fd.h"

namespace firebreak::fuzz {

/// One that shares this process's memory and descriptors, and is of a user of its own. It connects to sockets
/// when it is told to, so that who listens there sees its number and its user, and does nothing else. It ends
/// with this object, or with the thread that made it. Belongs to that thread.
class ThinProcess {
 public:
  /// Null: there can be none, as where we are not root.
  static std::unique_ptr<ThinProcess> start(uid_t user, gid_t group);
  ThinProcess(const ThinProcess&) = delete;
  ThinProcess& operator=(const ThinProcess&) = delete;
  ~ThinProcess();

  pid_t pid() const { return pid_; }
  /// To a SOCK_SEQPACKET socket, without waiting; to none: it cannot.
  os::Fd connect(const std::string& path);

 private:
  struct Shared;
  ThinProcess();
  static int live(void* shared);

  std::unique_ptr<Shared> shared_;
  std::vector<std::byte> stack_;
  pid_t pid_ = 0;
};

}  // namespace firebreak::fuzz
