// SPDX-License-Identifier: Apache-2.0
/// One process that somebody directs: started, listened to, told when to begin, and seen to end.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ground/base/clock.h"
#include "ground/os/event_loop.h"
#include "ground/os/kernel.h"
#include "ground/os/socket.h"

namespace firebreak::stage {

/// The program to start.
struct Casting {
  std::string name;
  std::string role;
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;  ///< added to our own
};

/// One process from its start to its end. Times are CLOCK_MONOTONIC.
struct ActorRecord {
  std::string name;
  std::string role;
  pid_t pid = 0;
  std::int64_t started_at_ns = 0;
  std::int64_t ended_at_ns = 0;  ///< 0: is still there
  std::optional<os::ExitStatus> exit;
  std::string last_words;  ///< the last line on its standard error
};

/// Owned by the loop's thread. A process that still runs when its actor goes is killed.
class Actor {
 public:
  using OnLine = std::function<void(const std::string& line)>;

  /// `on_line` gets every line of standard output.
  static Result<std::unique_ptr<Actor>> start(os::EventLoop& loop, os::Kernel& kernel, const Clock& clock,
                                              const Casting& casting, OnLine on_line);
  ~Actor();

  /// One line on its standard input.
  void tell(const std::string& line);
  /// The end of its standard input.
  void close_input() { input_.reset(); }
  void signal(int number);
  bool ended() const { return record_.exit.has_value(); }
  const ActorRecord& record() const { return record_; }

 private:
  /// A stream of lines from the process.
  struct Output {
    std::unique_ptr<os::Socket> socket;
    os::Watch watch;
    std::string pending;
  };

  Actor(os::Kernel& kernel, const Clock& clock) : kernel_(kernel), clock_(clock) {}
  Status listen(os::EventLoop& loop, Output& output, os::Socket socket, OnLine on_line);
  static void read(Output& output, const OnLine& on_line);
  void try_reap();

  os::Kernel& kernel_;
  const Clock& clock_;
  ActorRecord record_;
  std::unique_ptr<os::Socket> input_;
  Output output_;
  Output errors_;
  os::Fd pidfd_;
  os::Watch exit_watch_;
};

}  // namespace firebreak::stage
