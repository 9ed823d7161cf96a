// SPDX-License-Identifier: Apache-2.0
/// A process beside the supervisor that has the same descriptors: where the supervisor is killed, it takes
/// its place. It does nothing else, so that there is nothing in it that could fail.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/domains/mps/backoff.h"
#include "ground/base/clock.h"
#include "ground/base/result.h"
#include "ground/os/event_loop.h"
#include "ground/os/fd.h"
#include "ground/os/kernel.h"
#include "ground/os/socket.h"

namespace firebreak::agent {

using KeptDescriptors = std::map<std::string, os::Fd>;

/// As the supervisor sees it. Belongs to the loop's thread.
class SecondSupervisor {
 public:
  /// In the process, where the other end of the supervisor's socket is.
  static constexpr int socket_descriptor = 3;

  /// `command`: starts it; empty: there is none. `kept`: what it is to have. The references outlive it.
  SecondSupervisor(os::EventLoop& loop, os::Kernel& kernel, std::vector<std::string> command,
                   const KeptDescriptors& kept)
      : loop_(loop), kernel_(kernel), command_(std::move(command)), kept_(kept) {}

  /// And again whenever it has ended. What cannot be had is in the log.
  void start();
  void keep(const std::string& name, const os::Fd& descriptor);
  void drop(const std::string& name);
  /// It is not needed any more, and ends.
  void end();

 private:
  Status try_to_start();
  bool tell(std::string_view text, const os::Fd* descriptor = nullptr);
  void replace();

  os::EventLoop& loop_;
  os::Kernel& kernel_;
  std::vector<std::string> command_;
  const KeptDescriptors& kept_;
  std::optional<os::Socket> socket_;
  pid_t pid_ = 0;
  os::Fd pidfd_;
  os::Watch exit_;
  os::Watch again_;
  Monotonic started_{};
  mps::Backoff backoff_{Milliseconds(10), Milliseconds(5000), std::chrono::seconds(30)};
};

/// In that process: waits until the supervisor is gone. None: it has ended in good order, and so does
/// everything.
std::optional<KeptDescriptors> wait_to_be_needed(os::Socket& supervisor);

}  // namespace firebreak::agent
