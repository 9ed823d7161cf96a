// SPDX-License-Identifier: Apache-2.0
/// One process of a tenant: placed by the agent, started, adopted, and seen to end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/error_relay.h"
#include "client/agent_link.h"
#include "os/event_loop.h"
#include "os/real_kernel.h"

namespace firebreak::cli {

/// What the operator wants of a tenant.
struct TenantOptions {
  std::string socket_path;
  std::string name;
  bool guard = false;
  bool guard_ipc = false;
  bool report_only = false;
  std::string gpu;
  std::uint32_t sm_percent = 0;
  std::uint32_t standby_sm_percent = 0;  ///< of a standby while it waits; 0: the same
  std::uint32_t memory_mib = 0;
  std::vector<std::string> command;
};

/// What shells say of a process that a signal ended.
int status_of(const os::ExitStatus& exit);

/// Belongs to the loop's thread. A process that still runs when this goes is killed.
class TenantProcess {
 public:
  /// `on_end` is called once, on the loop's thread; this may not go inside of it.
  static Result<std::unique_ptr<TenantProcess>> start(os::EventLoop& loop, const TenantOptions& options,
                                                      abi::Role role, std::function<void()> on_end);
  TenantProcess(const TenantProcess&) = delete;
  TenantProcess& operator=(const TenantProcess&) = delete;
  ~TenantProcess();

  pid_t pid() const { return pid_; }
  /// Empty: it runs.
  const std::optional<os::ExitStatus>& exit() const { return exit_; }
  void signal(int number);
  /// The first SIGTERM goes as a request to the agent: with a kernel under way it would take the tenant's
  /// neighbours along. Where no agent is there, the next one is waited for, 5 s at most.
  void pass_on(int number);

 private:
  explicit TenantProcess(const TenantOptions& options)
      : socket_path_(options.socket_path), name_(options.name) {}
  Status spawn(const TenantOptions& options, const abi::Placed& placed);
  Status be_adopted(const abi::Adopt& adoption, Milliseconds patience);
  Status ask_this_or_next(std::unique_ptr<client::AgentLink>& link, const abi::Message& message,
                          Milliseconds patience);
  bool has_ended_within(Milliseconds time);
  Status watch(os::EventLoop& loop, std::function<void()> on_end);
  bool ask_for_end();

  os::RealKernel kernel_;
  std::string socket_path_;
  std::string name_;
  std::unique_ptr<client::AgentLink> link_;
  std::unique_ptr<ErrorRelay>
      relay_;  ///< after link_, which its thread uses; null: our standard error is its
  pid_t pid_ = 0;
  os::Fd pidfd_;
  os::Watch watch_;
  std::optional<os::ExitStatus> exit_;
  bool asked_for_end_ = false;
};

}  // namespace firebreak::cli
