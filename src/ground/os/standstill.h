// SPDX-License-Identifier: Apache-2.0
/// Stops another process, except for threads that write to a pipe.
#pragma once

#include <sys/types.h>

#include <memory>

#include "ground/base/result.h"
#include "ground/os/fd.h"

namespace firebreak::os {

/// Keeps all threads of a process still while this lives. With this the process is ended (SIGKILL), also
/// where the holder ends. A signal that ends it before does so all the same; its parent hears of that once
/// this has ended.
class Standstill {
 public:
  Standstill(const Standstill&) = delete;
  Standstill& operator=(const Standstill&) = delete;
  virtual ~Standstill() = default;

 protected:
  Standstill() = default;
};

/// The identity of a pipe, as stat(2) has it.
struct PipeIdentity {
  dev_t device = 0;
  ino_t inode = 0;
};
Result<PipeIdentity> pipe_identity(const Fd& pipe);

/// Does what Kernel::stop_all_but_writers() promises, by ptrace(2), for as long as the calling thread lives.
/// With its end the process is ended. May take as long as that process likes. PermissionDenied: it is the
/// first process, with which all others would end, or the calling one.
Status stop_all_but_writers_for_good(pid_t pid, const PipeIdentity& pipe);

}  // namespace firebreak::os
