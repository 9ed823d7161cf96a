// SPDX-License-Identifier: Apache-2.0
/// The agent's own client of a domain: a process with a small context that does nothing (park/main.cpp).
/// While its core dump is not complete the driver does not reset the domain.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "agent/options.h"
#include "os/event_loop.h"
#include "os/kernel.h"
#include "park/dump_pipe.h"

namespace firebreak::agent {

/// Belongs to the loop's thread. Its end ends the process, and takes the pipe away.
class ParkingClient {
 public:
  struct Knows {
    const AgentOptions& options;
    os::EventLoop& loop;
    os::Kernel& kernel;
  };
  struct Callbacks {
    std::function<void()> on_ready;
    /// It says why it cannot be a client.
    std::function<void(const std::string& why)> on_refused;
    /// Its dump has begun, so somebody in the domain has raised an exception.
    std::function<void()> on_dump;
    /// It is complete: after read_rest_of_dump().
    std::function<void()> on_dump_complete;
    /// The process has ended. The callback may end this object.
    std::function<void()> on_exit;
  };
  /// `environment`: of the domain.
  static Result<std::unique_ptr<ParkingClient>> start(Knows knows, Callbacks callbacks, std::string pipe_path,
                                                      std::shared_ptr<park::DumpBudget> budget,
                                                      const Environment& environment);
  ParkingClient(const ParkingClient&) = delete;
  ParkingClient& operator=(const ParkingClient&) = delete;
  ~ParkingClient();

  pid_t pid() const { return pid_; }
  bool is_ready() const { return is_ready_; }
  bool has_begun() const { return has_begun_; }
  /// It runs a kernel of 5 ms, for which the GPU takes turns between domains.
  void take_a_turn();
  /// What it still has to write is thrown away, and the driver may reset the domain.
  void read_rest_of_dump();
  /// The process ends soon; on_exit comes.
  void end();

 private:
  ParkingClient(Knows knows, Callbacks callbacks, std::string pipe_path)
      : at_(knows), callbacks_(std::move(callbacks)), pipe_path_(std::move(pipe_path)) {}
  Status start(std::shared_ptr<park::DumpBudget> budget, const Environment& environment);
  Status watch();
  void on_output();
  void on_exit();

  Knows at_;
  Callbacks callbacks_;
  std::string pipe_path_;
  pid_t pid_ = 0;
  os::Fd pidfd_;
  os::Fd input_;  ///< closed, it ends
  os::Fd output_;
  std::optional<park::DumpPipe> pipe_;
  bool is_ready_ = false;
  bool has_begun_ = false;  ///< to dump
  os::Watch exit_watch_;
  os::Watch output_watch_;
  os::Watch dump_watch_;
};

}  // namespace firebreak::agent
