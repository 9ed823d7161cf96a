// SPDX-License-Identifier: Apache-2.0
/// A process of our own program that does something for us and is asked by one socket (AF_UNIX,
/// SOCK_SEQPACKET): how it starts and ends, on both sides. What is asked is for who uses this
/// (ground/os/helper_process.h, ground/os/rights_keeper.h).
///
/// It first says "ready". It ends when nobody has the other end any more, and with who has started it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/clock.h"
#include "ground/base/result.h"
#include "ground/os/fd.h"
#include "ground/os/socket.h"

namespace firebreak::os {

std::string_view text_in(const Message& message);
bool is_socket_for_messages(const Fd& fd);

/// Thread safe. There is no other one after it: who started it may have no right to start another.
class SocketProcess {
 public:
  /// The socket's number in that process.
  static constexpr int socket_descriptor = 3;

  SocketProcess() = default;
  SocketProcess(const SocketProcess&) = delete;
  SocketProcess& operator=(const SocketProcess&) = delete;
  /// Ends the process, which is reaped if it ends within a second.
  ~SocketProcess();

  /// Starts the process; called once, first. It begins with `command`, has `kept` besides, with the numbers
  /// behind the socket's, and ends with the calling thread. Waits until it is there. Timeout: it is not, with
  /// `why`.
  Status start(std::vector<std::string> command, Milliseconds limit, const std::vector<int>& kept,
               const char* why);
  /// Unavailable: it has ended. Timeout: it has not taken so many questions yet.
  Status send(std::string_view text, std::span<const int> attached, Milliseconds limit);

  pid_t pid() const { return pid_; }
  /// A poll() finds it readable once it has ended.
  const Fd& process() const { return process_; }

 private:
  std::mutex mutex_;  ///< guards the next one
  std::optional<Socket> socket_;
  pid_t pid_ = 0;
  Fd process_;
};

/// Returns the process whose child this one is. A poll() finds it readable once that has ended, also where
/// its end may send us no signal. NotFound: it has ended already.
Result<Fd> parent_process();

/// The state of such a process, which has one thread: who asks it, who has started it, and children of its
/// own.
class SocketServer {
 public:
  explicit SocketServer(Socket& asker) : asker_(asker) {}

  /// Says that it is there, and gives each message to `take`, until nobody has the other end any more or who
  /// has started it is gone. What nobody understands is dropped.
  void serve(const std::function<void(Message message)>& take);

  std::size_t children() const { return children_.size(); }
  /// One that does that, with nothing of ours but what `work` has, and ends. It ends with us. The answer is
  /// its pidfd, until the next call.
  Result<const Fd*> start_child(const std::function<void()>& work);

 private:
  struct Child {
    pid_t pid = 0;
    Fd process;
  };
  bool wait_and_reap();

  Socket& asker_;
  const Result<Fd> starter_ = parent_process();
  std::vector<Child> children_;
};

}  // namespace firebreak::os
