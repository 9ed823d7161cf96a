// SPDX-License-Identifier: Apache-2.0
/// The agent's own client of a domain: a process with a small context that does nothing
/// (program/parking_client/main.cpp). While its core dump is not complete the driver does not reset the
/// domain. Where the service manager starts it it is a service of its own, which nothing of the agent's unit
/// binds; else a child.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "agent/parking/park/dump_pipe.h"
#include "agent/service/apart_starter.h"
#include "agent/settings/options.h"
#include "ground/os/event_loop.h"
#include "ground/os/kernel.h"

namespace firebreak::agent {

/// Belongs to the loop's thread. Its end ends the process, and takes the pipe away.
class ParkingClient {
 public:
  struct Knows {
    const AgentOptions& options;
    os::EventLoop& loop;
    os::Kernel& kernel;
    ApartStarter& starter;
  };
  struct Callbacks {
    std::function<void()> on_ready;
    /// Takes why it cannot be a client, or could not be started; on_exit comes.
    std::function<void(const std::string& why)> on_refused;
    /// Its dump has begun, so somebody in the domain has raised an exception.
    std::function<void()> on_dump;
    /// Called when the dump is complete: after read_rest_of_dump().
    std::function<void()> on_dump_complete;
    /// The process has ended, or there was none. The callback may end this object.
    std::function<void()> on_exit;
  };
  struct Place {
    std::string domain;
    std::string unit;  ///< where it is a service, without ".service"
    std::string pipe_path;
  };
  /// `environment`: of the domain. The process may come later.
  static Result<std::unique_ptr<ParkingClient>> start(Knows knows, Callbacks callbacks, Place place,
                                                      std::shared_ptr<park::DumpBudget> budget,
                                                      const Environment& environment);
  ParkingClient(const ParkingClient&) = delete;
  ParkingClient& operator=(const ParkingClient&) = delete;
  ~ParkingClient();

  /// 0: it is being started, and is no client of its domain before it has one.
  pid_t pid() const { return pid_; }
  bool is_ready() const { return is_ready_; }
  bool has_begun() const { return has_begun_; }
  /// Runs a kernel of 5 ms, for which the GPU takes turns between domains.
  void take_a_turn();
  /// Reads the rest of its dump, which is thrown away, and the driver may reset the domain.
  void read_rest_of_dump();
  /// The process ends soon; on_exit comes.
  void end();

 private:
  ParkingClient(Knows knows, Callbacks callbacks, Place place)
      : at_(knows), callbacks_(std::move(callbacks)), place_(std::move(place)) {}
  Status start(std::shared_ptr<park::DumpBudget> budget, const Environment& environment);
  void start_apart(os::SpawnRequest as_child, os::Fd input, os::Fd output);
  void take(const Result<pid_t>& process, const os::SpawnRequest& as_child);
  Status spawn(const os::SpawnRequest& request);
  Status follow(pid_t pid);
  Status watch();
  void on_output();
  void on_exit();

  Knows at_;
  Callbacks callbacks_;
  Place place_;
  std::shared_ptr<bool> is_there_ = std::make_shared<bool>(true);  ///< callbacks that come later look whether
                                                                   ///< we are there
  pid_t pid_ = 0;
  os::Fd pidfd_;
  os::Fd input_;  ///< closed, it ends
  os::Fd output_;
  std::optional<park::DumpPipe> pipe_;
  bool is_ready_ = false;
  bool has_begun_ = false;  ///< it has begun to dump
  os::Watch exit_watch_;
  os::Watch output_watch_;
  os::Watch dump_watch_;
};

}  // namespace firebreak::agent
