// SPDX-License-Identifier: Apache-2.0
/// A process that alone keeps the right to look at other users' processes (CAP_SYS_PTRACE) once the agent has
/// given its own up, and starts helpers that have it (ground/os/broker.h). It reads nothing of others and
/// waits for nobody but who asks it: what holds a helper does not hold it, so that the next one can be
/// started.
///
/// It has one socket (AF_UNIX, SOCK_SEQPACKET), on which it first says "ready" and then nothing. A question
/// is one message "helper", with one end of a socket of the same kind attached. That end is a new helper's,
/// and the first message on it is the keeper's:
///   p               with a pidfd attached: of the helper that is there now
///   !WHY            there is none
/// So an answer cannot be taken for another question's. Whatever else is said to it is dropped: nothing is
/// started, and nothing is answered.
///
/// It has CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH alone, where it has the first at all, and can get no others
/// (no_new_privs). It ends when nobody has the other end any more, and with who has started it; its helpers
/// end with it. SIGTERM, SIGINT and SIGHUP do not end it: they are for who asks it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ground/base/clock.h"
#include "ground/base/result.h"
#include "ground/os/socket.h"
#include "ground/os/socket_process.h"

namespace firebreak::os {

/// Thread safe. There is no other one after it: who started it may have no right to start another.
class RightsKeeper {
 public:
  static constexpr int socket_descriptor = SocketProcess::socket_descriptor;
  /// Largest number of helpers at once.
  static constexpr std::size_t most_helpers = 128;

  /// `command`: of a process that calls keep_rights() with that descriptor. Waits until it is there. It ends
  /// with the calling thread.
  static Result<std::shared_ptr<RightsKeeper>> start(std::vector<std::string> command, Milliseconds limit);

  /// Asks for a helper; what comes of it is said at the other end of that socket. Unavailable: it has ended.
  /// Timeout: it has not taken so many questions yet.
  Status ask_for_helper(const Fd& its_end, Milliseconds limit);

  pid_t pid() const { return process_.pid(); }
  /// A poll() finds it readable once it has ended.
  const Fd& process() const { return process_.process(); }

 private:
  RightsKeeper() = default;

  SocketProcess process_;
};

/// Returns the helper's process, which is the keeper's first word on the other end of a helper's socket.
/// Timeout: it has said nothing yet (a negative limit: waits for ever). Unavailable: it is gone.
/// ResourceExhausted: there is no helper.
Result<Fd> await_helper(Socket& socket, Milliseconds limit);

/// Serves as the keeper, until nobody has the other end any more. `help`: what a helper does, with its end.
void keep_rights(Socket& asker, const std::function<void(Socket&)>& help);

}  // namespace firebreak::os
