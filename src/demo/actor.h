// SPDX-License-Identifier: Apache-2.0
/// One process of the play: started, listened to, told when to begin, and seen to end.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "demo/play.h"
#include "mps/domain.h"
#include "os/event_loop.h"
#include "os/kernel.h"
#include "os/socket.h"

namespace firebreak::demo {

struct Casting {
  std::string tenant;
  std::string role;
  std::vector<std::string> command;
  mps::Environment environment;
};

/// Owned by the loop's thread. A process that still runs when its actor goes is killed.
class Actor {
 public:
  using OnLine = std::function<void(const std::string& line)>;

  /// `on_line` gets every line of standard output that is not a progress mark.
  static Result<std::unique_ptr<Actor>> start(os::EventLoop& loop, os::Kernel& kernel, const Clock& clock,
                                              const Casting& casting, OnLine on_line);
  ~Actor();

  /// One line on its standard input.
  void tell(const std::string& line);
  /// The end of its standard input.
  void close_input() { input_.reset(); }
  void signal(int number);
  bool ended() const { return record_.exit.has_value(); }
  const ProcessRecord& record() const { return record_; }
  /// Steps seen to be done, from the start.
  std::uint64_t steps_done() const { return record_.steps.empty() ? 0 : record_.steps.back().step; }

 private:
  /// A stream of lines from the process.
  struct Output {
    std::unique_ptr<os::Socket> socket;
    os::Watch watch;
    std::string pending;
  };

  Actor(os::Kernel& kernel, const Clock& clock, OnLine on_line)
      : kernel_(kernel), clock_(clock), on_line_(std::move(on_line)) {}
  Status listen(os::EventLoop& loop, Output& output, os::Socket socket,
                std::function<void(const std::string&)> line);
  static void read(Output& output, const std::function<void(const std::string&)>& line);
  void on_output_line(const std::string& line);
  void try_reap();

  os::Kernel& kernel_;
  const Clock& clock_;
  OnLine on_line_;
  ProcessRecord record_;
  std::unique_ptr<os::Socket> input_;
  Output output_;
  Output errors_;
  os::Fd pidfd_;
  os::Watch exit_watch_;
};

}  // namespace firebreak::demo
