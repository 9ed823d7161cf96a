// SPDX-License-Identifier: Apache-2.0
/// One process of a tenant: placed by the agent, started, adopted, and seen to end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands/cli/agent_request.h"
#include "commands/cli/tenant_start.h"
#include "ground/os/event_loop.h"
#include "ground/os/real_kernel.h"
#include "shared/link/agent_link.h"

namespace firebreak::cli {

/// A service manager has started the next agent by then; who asks for an end has little patience.
inline constexpr Milliseconds next_agent_patience{5'000};

/// What shells say of a process that a signal ended.
int status_of(const os::ExitStatus& exit);

/// Belongs to the loop's thread. Its program begins once the agent follows it, so that nothing it does is
/// missed. A process that still runs when this goes is killed. Nothing of it waits: what is asked of the
/// agent, or of the next one where it is away, is answered while the loop goes on.
class TenantProcess {
 public:
  /// Each is called once at most, on the loop's thread, later than start(); this may not go inside of them.
  struct Callbacks {
    std::function<void()> on_started;  ///< it has a pid
    std::function<void()> on_adopted;  ///< the agent follows it
    std::function<void()> on_end;      ///< it has ended, or was not started, or has no agent: see failure()
  };
  static std::unique_ptr<TenantProcess> start(os::EventLoop& loop, const TenantOptions& options,
                                              abi::Role role, Callbacks callbacks);
  TenantProcess(const TenantProcess&) = delete;
  TenantProcess& operator=(const TenantProcess&) = delete;
  ~TenantProcess();

  /// 0: it is not started yet.
  pid_t pid() const { return pid_; }
  /// As the agent calls it, which sees no PID namespace but its own. Ours before it has been adopted, and
  /// where the agent is of an earlier version.
  pid_t agents_number() const { return agents_number_ != 0 ? agents_number_ : pid_; }
  bool is_adopted() const { return is_adopted_; }
  abi::Role role() const { return role_; }
  bool has_ended() const { return exit_ || failure_; }
  /// Empty: it runs, or failed.
  const std::optional<os::ExitStatus>& exit() const { return exit_; }
  /// Why it was not started, or why it was ended: nobody adopted it.
  const std::optional<Error>& failure() const { return failure_; }
  /// One that is not started yet is not started any more.
  void signal(int number);
  /// The first SIGTERM goes as a request to the agent, once that follows it: with a kernel under way it would
  /// take the tenant's neighbours along. Where no agent is there, the next one is waited for,
  /// next_agent_patience at most.
  void pass_on(int number);

 private:
  TenantProcess(os::EventLoop& loop, TenantOptions options, abi::Role role, Callbacks callbacks)
      : loop_(loop), options_(std::move(options)), role_(role), callbacks_(std::move(callbacks)) {}
  void ask(abi::Message message, Milliseconds patience, std::unique_ptr<link::AgentLink> first,
           AgentRequest::Done done);
  void on_placed(const Result<link::Answer>& answer, std::unique_ptr<link::AgentLink> link);
  Status spawn(const abi::Placed& placed);
  Status watch();
  void begin();
  void on_adopted(const Result<link::Answer>& answer, std::unique_ptr<link::AgentLink> link);
  void ask_for_end();
  void on_exit();
  void give_up(Error why);
  void end_asking();

  os::RealKernel kernel_;
  os::EventLoop& loop_;
  const TenantOptions options_;
  const abi::Role role_;
  Callbacks callbacks_;
  std::unique_ptr<link::AgentLink> link_;  ///< of the agent that has adopted it
  std::vector<std::string> notes_;         ///< for the agent, once that has adopted it
  pid_t pid_ = 0;
  pid_t agents_number_ = 0;            ///< 0: it has not said
  std::optional<os::HeldStart> held_;  ///< its program does not run yet
  os::Fd pidfd_;
  os::Watch watch_;
  std::optional<os::ExitStatus> exit_;
  std::optional<Error> failure_;
  bool is_adopted_ = false;
  bool asked_for_end_ = false;
  std::unique_ptr<AgentRequest> request_;  ///< the one under way
};

}  // namespace firebreak::cli
