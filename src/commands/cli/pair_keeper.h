// SPDX-License-Identifier: Apache-2.0
/// Both processes of a tenant, and whoever comes after them.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/domains/mps/backoff.h"
#include "commands/cli/pair_plan.h"
#include "commands/cli/tenant_process.h"
#include "ground/base/clock.h"

namespace firebreak::cli {

/// Starts the active, and a standby whenever the tenant serves without one. One thread's; looks at the
/// agent's status whenever something happens, so that nothing is missed while the agent itself is started
/// anew.
class PairKeeper {
 public:
  /// The signals that a user may send become ours, and are passed on: before other threads start.
  static Result<std::unique_ptr<PairKeeper>> create(TenantOptions options);

  /// Until the tenant is done; the exit status of who finished it. Unavailable, with the reason: it is lost.
  Result<int> run();

 private:
  PairKeeper(TenantOptions options, std::unique_ptr<os::EventLoop> loop)
      : loop_(std::move(loop)), options_(std::move(options)) {}

  Status connect();
  void on_agent_lost();
  void on_event(const abi::Event& event);
  bool is_agent_awaited() const;
  pid_t our_number(pid_t agents) const;
  void note_numbers();
  std::optional<link::TenantView> in_our_numbers(std::optional<link::TenantView> tenant) const;
  void look_soon();
  void look_in(Nanoseconds delay);
  void look();
  void move(const std::optional<link::TenantView>& tenant);
  void start(abi::Role role, std::uint32_t sm_percent, bool is_to_wait);
  void start_standby();
  void hand_over(const link::TenantView& tenant);
  void await_end_of_others(pid_t who_finished);
  void end_all();
  void signal_all(int number);
  void on_signal(int number);
  void ask_for_end();
  void note_ends();
  void note_failure(const TenantProcess& process);
  void note_exit(pid_t pid, abi::Role role, const os::ExitStatus& exit);
  void note_progress(const std::optional<link::TenantView>& tenant);
  bool is_settled(const std::optional<link::TenantView>& tenant) const;
  std::vector<pid_t> running() const;
  bool is_starting() const;
  int exit_status() const;

  std::unique_ptr<os::EventLoop> loop_;  ///< first: all others use it to their end
  const SystemClock clock_;
  TenantOptions options_;
  os::Watch signals_;
  os::Watch next_look_;
  os::Watch patience_;  ///< with those who are to end
  std::vector<std::unique_ptr<TenantProcess>> processes_;
  std::map<pid_t, pid_t> known_;  ///< our numbers of processes by the agent's, where those differ
  std::map<pid_t, Monotonic> started_;
  std::map<pid_t, os::ExitStatus> ends_;
  pid_t last_ended_ = 0;
  pid_t active_ = 0;         ///< as the agent said last
  std::set<pid_t> actives_;  ///< of those who run, who has been one
  std::set<pid_t> small_;    ///< of those who run, who was made to wait
  pid_t asked_for_ = 0;      ///< the standby to which the active was asked to hand over
  bool active_has_ended_ = false;
  std::uint64_t furthest_ = 0;  ///< committed steps when an active had ended
  pid_t finished_ = 0;          ///< who said that the tenant is done
  mps::Backoff backoff_{Milliseconds(200), Milliseconds(30'000), std::chrono::seconds(60)};
  Monotonic next_standby_{};  ///< no earlier
  Monotonic agent_lost_at_{};
  std::optional<Error> not_started_;  ///< the active, and why
  std::string lost_;                  ///< why; empty: it is not
  bool gives_up_ = false;
  bool ending_ = false;  ///< somebody told us to
  bool look_due_ = false;
  std::unique_ptr<link::AgentLink> link_;      ///< null while there is no agent
  std::unique_ptr<AgentRequest> end_request_;  ///< once somebody told us to end
};

}  // namespace firebreak::cli
