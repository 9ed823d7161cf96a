// SPDX-License-Identifier: Apache-2.0
/// A process of our own program that has other rights than we, and does for us what it is asked, by questions
/// that it understands and checks itself. What these are is for who uses this.
///
/// It has one socket (AF_UNIX, SOCK_SEQPACKET), on which it first says "ready" and then nothing. A question
/// is one message, with one end of a socket of the same kind attached, and after that what the question
/// needs. On that end comes the answer, one message:
///   .TEXT            it is done; descriptors may be attached
///   !CODE MESSAGE    it is not, and why
/// So an answer cannot be taken for another question's. Where it may take longer, a child of the process does
/// it, so that others need not wait; of these there are 64 at most. Whatever has no such end attached is
/// dropped. It ends when nobody has the other end any more, and with who has started it. SIGTERM, SIGINT and
/// SIGHUP do not end it: they are for who asks it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/clock.h"
#include "ground/base/result.h"
#include "ground/os/fd.h"
#include "ground/os/socket.h"
#include "ground/os/socket_process.h"

namespace firebreak::os {

struct HelperAnswer {
  std::string text;
  std::vector<Fd> descriptors = {};
  /// Work that the answering process does once it has answered.
  std::function<void()> afterwards = nullptr;
};

/// Thread safe. There is no other one after it: who started it may have no right to start another.
class HelperProcess {
 public:
  static constexpr int socket_descriptor = SocketProcess::socket_descriptor;
  static constexpr std::size_t most_at_once = 64;

  /// `command`: of a process that calls serve_as_helper() with that descriptor. Waits until it is there. It
  /// ends with the calling thread.
  /// `kept`: descriptors that the process has as well, with the numbers behind that one.
  static Result<std::unique_ptr<HelperProcess>> start(std::vector<std::string> command, Milliseconds limit,
                                                      const std::vector<int>& kept = {});

  /// Timeout: it is not answered. Unavailable: the process has ended.
  Result<HelperAnswer> ask(const std::string& question, std::span<const int> attached, Milliseconds limit);

  pid_t pid() const { return process_.pid(); }
  /// A poll() finds it readable once it has ended.
  const Fd& process() const { return process_.process(); }

 private:
  HelperProcess() = default;

  SocketProcess process_;
};

struct HelperDuties {
  using Attached = std::vector<Fd>;
  /// Says whether a question is one of this kind; with whether it is answered at once. An error is the
  /// answer.
  std::function<Result<bool>(std::string_view question, const Attached& attached)> is_quick;
  std::function<Result<HelperAnswer>(std::string_view question, const Attached& attached)> answer;
  /// Runs first in a child, which gives up what only the process itself is to have.
  std::function<void()> in_child = nullptr;
};

/// Serves questions as such a process, which has one thread, until nobody has the other end any more.
void serve_as_helper(Socket& asker, const HelperDuties& duties);

}  // namespace firebreak::os
