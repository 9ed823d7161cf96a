// SPDX-License-Identifier: Apache-2.0
/// Plays systemd's part for an agent where there is none (a container): starts it, keeps its descriptors, and
/// starts it again when it fails. Knows nothing of tenants, so that there is little in it that could fail.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/domains/mps/backoff.h"
#include "agent/service/second_supervisor.h"
#include "agent/service/watchdog.h"
#include "ground/os/event_loop.h"
#include "ground/os/kernel.h"
#include "ground/os/socket.h"

namespace firebreak::agent {

/// Returns the value of a name that a service told its manager, as sd_notify(3) writes it: NAME=VALUE, one a
/// line.
std::string value_in(const std::string& state, const std::string& name);

/// True when a descriptor may be kept under that name: as systemd has it, and without spaces. Another one
/// would cut off those behind it where the next agent gets them.
bool may_be_a_name(const std::string& name);

class Supervisor {
 public:
  /// Largest number, as systemd's FileDescriptorStoreMax= in our unit.
  static constexpr std::size_t descriptors_max = 4096;
  /// The next agent gets their names in one variable, and Linux starts nobody with one of 128 KiB.
  static constexpr std::size_t names_bytes_max = std::size_t{120} << 10;

  /// `command`: the agent's, without the option that asks for a supervisor. `notify_path`: for a socket of
  /// ours, absolute. The signals SIGTERM, SIGINT and SIGHUP become ours: before other threads start.
  /// `silence`: an agent that is up and gives no sign of life for so long (WATCHDOG=1) is killed, and
  /// followed by the next one; 0: none is.
  /// `second`: starts the process that takes this one's place where it is killed (second_supervisor.h);
  /// empty: nobody does. `kept`: what one that was killed has kept; none: this is the first.
  static Result<std::unique_ptr<Supervisor>> create(os::Kernel& kernel, std::vector<std::string> command,
                                                    std::string notify_path, Nanoseconds silence,
                                                    std::vector<std::string> second = {},
                                                    std::optional<KeptDescriptors> kept = {});
  ~Supervisor();

  /// Runs until the agent ends in good order, is told to end through us, or cannot even start; returns its
  /// exit status.
  Result<int> run();

 private:
  Supervisor(os::Kernel& kernel, std::vector<std::string> command, std::string notify_path,
             Nanoseconds silence, std::vector<std::string> second, std::unique_ptr<os::EventLoop> loop,
             os::Socket notify)
      : kernel_(kernel),
        command_(std::move(command)),
        notify_path_(std::move(notify_path)),
        silence_(silence),
        loop_(std::move(loop)),
        notify_(std::move(notify)),
        second_(*loop_, kernel_, std::move(second), kept_) {}

  Status start();
  os::SpawnRequest request() const;
  void hear();
  bool hear_one();
  void hear_of_life(const std::string& state);
  void look();
  void keep(const std::string& name, os::Fd descriptor);
  bool has_room_for(const std::string& name) const;
  void ended();
  void pass_on(int signal);

  os::Kernel& kernel_;
  std::vector<std::string> command_;
  std::string notify_path_;
  Nanoseconds silence_;
  std::unique_ptr<os::EventLoop> loop_;
  os::Socket notify_;
  os::Watch signals_;
  os::Watch heard_;
  os::Watch exit_;
  os::Watch restart_;
  os::Watch looks_;
  Watchdog watchdog_{silence_};
  KeptDescriptors kept_;
  SecondSupervisor second_;
  pid_t pid_ = 0;
  os::Fd pidfd_;
  Monotonic started_{};
  mps::Backoff backoff_{Milliseconds(10), Milliseconds(5000), std::chrono::seconds(30)};
  bool was_ready_ = false;  ///< the agent was ready once: then its failures are worth another try
  bool ending_ = false;
  int status_ = 0;
};

}  // namespace firebreak::agent
