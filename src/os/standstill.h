// SPDX-License-Identifier: Apache-2.0
/// Another process that stands still, but for who writes to a pipe.
#pragma once

#include <sys/types.h>

#include <memory>

#include "base/result.h"
#include "os/fd.h"

namespace firebreak::os {

/// All threads of that process stand still while this lives. With this the process is ended (SIGKILL), also
/// where the one who has this ends. A signal that ends it before does so all the same; its parent hears of
/// that once this has ended.
class Standstill {
 public:
  Standstill(const Standstill&) = delete;
  Standstill& operator=(const Standstill&) = delete;
  virtual ~Standstill() = default;

 protected:
  Standstill() = default;
};

/// But for threads that wait for room in `pipe`, whose reading end that is: they go on. By ptrace(2), from a
/// thread of its own; waited for up to 0.3 s. After any error but NotFound the process has to be killed: some
/// of its threads may stand still. PermissionDenied: it is not ours, or somebody traces it already (a
/// debugger). Timeout: it is in execve(2), for one. NotFound: there is no such process.
Result<std::unique_ptr<Standstill>> stop_all_but_writers(pid_t pid, const Fd& pipe);

}  // namespace firebreak::os
