// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/pair_keeper.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include "commands/cli/commands.h"

namespace firebreak::cli {
namespace {

/// Between two looks where the agent is not there, or has not seen all yet.
constexpr Milliseconds look_pause{50};
/// For SIGTERM to be heeded.
constexpr std::uint32_t grace_ms = 2000;
/// For a standby that has nothing to do any more, and for the agent's orderly end of a tenant. With the time
/// that the next agent is waited for.
constexpr Milliseconds end_patience{12'000};

}  // namespace

Result<std::unique_ptr<PairKeeper>> PairKeeper::create(TenantOptions options) {
  auto loop = os::EventLoop::create();
  if (!loop) return propagate(loop);
  std::unique_ptr<PairKeeper> keeper(new PairKeeper(std::move(options), std::move(*loop)));
  auto signals = keeper->loop_->on_signals(
      {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGTSTP, SIGWINCH},
      [raw = keeper.get()](int number) { raw->on_signal(number); });
  if (!signals) return propagate(signals);
  keeper->signals_ = std::move(*signals);
  return keeper;
}

Result<int> PairKeeper::run() {
  (void)connect();  // where no agent is there, it is awaited
  start(abi::Role::Active, options_.sm_percent, false);
  loop_->run();
  if (not_started_) return tl::unexpected(*not_started_);
  if (!gives_up_) return exit_status();
  return fail(ErrorCode::Unavailable, fmt::format("tenant '{}' is lost: {}", options_.name, lost_),
              "started again within the agent's --lease-s, it goes on where it stopped");
}

// --- what is heard
// --------------------------------------------------------------------------------------------------

Status PairKeeper::connect() {
  auto link = link::AgentLink::connect(options_.socket_path);
  if (!link) return propagate(link);
  // Both on the link's thread.
  (*link)->on_lost([this] { loop_->post([this] { on_agent_lost(); }); });
  const Status subscribed = (*link)->subscribe([this](const abi::Event& event) {
    if (event.tenant == options_.name) loop_->post([this, event] { on_event(event); });
  });
  if (!subscribed) return subscribed;
  link_ = std::move(*link);
  return {};
}

/// Who tells us of the tenant is gone.
void PairKeeper::on_agent_lost() {
  if (!link_ || !link_->lost()) return;
  link_.reset();
  agent_lost_at_ = clock_.now();
  look_soon();
}

void PairKeeper::on_event(const abi::Event& event) {
  note_numbers();
  if (event.what == abi::EventKind::Finished) finished_ = our_number(static_cast<pid_t>(event.pid));
  if (event.what == abi::EventKind::Lost) lost_ = event.text;
  look_soon();
}

void PairKeeper::on_signal(int number) {
  if (number != SIGTERM && number != SIGINT && number != SIGHUP) return signal_all(number);
  const bool first = !std::exchange(ending_, true);
  // Who is not started yet is not started any more.
  for (const auto& process : processes_) {
    if (process->pid() == 0) process->signal(number);
  }
  if (number != SIGTERM || !first) return signal_all(number);
  patience_ = loop_->after_or_now(end_patience, [this] { signal_all(SIGKILL); });
  ask_for_end();
}

/// Of this agent or of the next one: without an agent, the end of a kernel under way is its neighbours' end.
/// The answer comes when all are gone whom the agent knows.
void PairKeeper::ask_for_end() {
  AgentRequest::Question question{options_.socket_path, abi::EndTenant{options_.name, grace_ms, true},
                                  next_agent_patience, end_patience};
  end_request_ = std::make_unique<AgentRequest>(
      *loop_, std::move(question), nullptr, [this](const auto& answer, const auto&) {
        const bool has_it = answer || answer.error().code == ErrorCode::Timeout;
        for (const auto& process : processes_) has_it ? process->pass_on(SIGTERM) : process->signal(SIGTERM);
      });
}

// --- what follows
// ---------------------------------------------------------------------------------------------------

void PairKeeper::look_soon() {
  if (std::exchange(look_due_, true)) return;
  loop_->post([this] {
    look_due_ = false;
    look();
  });
}

void PairKeeper::look_in(Nanoseconds delay) {
  next_look_ = loop_->after_or_now(delay, [this] { look(); });
}

void PairKeeper::look() {
  note_numbers();
  note_ends();
  const bool nobody_runs = running().empty();
  if (ending_ || not_started_) return processes_.empty() ? loop_->stop() : void();
  if (is_starting()) return;
  if (!link_ && !connect()) return nobody_runs && !is_agent_awaited() ? loop_->stop() : look_in(look_pause);
  const auto status = link_->status();
  if (!status) return look_in(look_pause);
  move(in_our_numbers(link::parse_status(*status).tenant(options_.name)));
}

/// In a PID namespace of our own the agent has other numbers for our processes. Somebody else's may be one of
/// ours there: it is negative, as no process's is.
pid_t PairKeeper::our_number(pid_t agents) const {
  const auto found = known_.find(agents);
  if (found != known_.end()) return found->second;
  return known_.empty() ? agents : -agents;
}

/// What the agent tells of a process may come after its end.
void PairKeeper::note_numbers() {
  for (const auto& process : processes_) {
    const pid_t agents = process->agents_number();
    if (agents != process->pid()) known_[agents] = process->pid();
  }
}

std::optional<link::TenantView> PairKeeper::in_our_numbers(std::optional<link::TenantView> tenant) const {
  if (!tenant) return tenant;
  for (pid_t* each : {&tenant->active, &tenant->standby}) {
    if (*each != 0) *each = our_number(*each);
  }
  return tenant;
}

/// The next one says what became of the tenant.
bool PairKeeper::is_agent_awaited() const { return clock_.now() < agent_lost_at_ + next_agent_patience; }

void PairKeeper::move(const std::optional<link::TenantView>& tenant) {
  if (tenant && tenant->active != 0) active_ = tenant->active;
  note_progress(tenant);
  const std::vector<pid_t> still_there = running();
  switch (next_move(tenant, still_there, small_)) {
    case Move::Wait:
      if (!is_settled(tenant)) look_in(look_pause);
      return;
    case Move::StartStandby:
      if (clock_.now() < next_standby_) return look_in(next_standby_ - clock_.now());
      return start_standby();
    case Move::HandOver:
      return hand_over(*tenant);
    case Move::End:
      if (still_there.empty()) return loop_->stop();
      return await_end_of_others(tenant->phase == pair::Phase::Finished ? tenant->active : 0);
    case Move::GiveUp:
      gives_up_ = true;
      if (lost_.empty()) lost_ = "nobody was left to take over";
      if (still_there.empty()) return loop_->stop();
      return end_all();
  }
}

/// The agent knows of everybody who runs, and of nobody else; what changes is told by an event.
bool PairKeeper::is_settled(const std::optional<link::TenantView>& tenant) const {
  if (!tenant) return true;
  const std::size_t known = (tenant->active != 0 ? 1U : 0U) + (tenant->standby != 0 ? 1U : 0U);
  return known == running().size();
}

/// One at a time, so it is the last of all.
void PairKeeper::start(abi::Role role, std::uint32_t sm_percent, bool is_to_wait) {
  TenantOptions options = options_;
  options.sm_percent = sm_percent;
  // Meanwhile nothing else is followed; whoever stands by is tried again.
  if (role == abi::Role::Standby) options.domain_patience = Milliseconds(0);
  const auto on_started = [this, role, is_to_wait] {
    const pid_t pid = processes_.back()->pid();
    started_[pid] = clock_.now();
    if (role == abi::Role::Active) active_ = pid;
    if (is_to_wait) small_.insert(pid);
    look_soon();
  };
  const auto look_again = [this] { look_soon(); };
  processes_.push_back(TenantProcess::start(*loop_, options, role, {on_started, look_again, look_again}));
}

/// Beside one that was made to wait, somebody who need not.
void PairKeeper::start_standby() {
  const bool is_to_wait = options_.standby_sm_percent != 0 && !small_.contains(active_);
  start(abi::Role::Standby, is_to_wait ? options_.standby_sm_percent : options_.sm_percent, is_to_wait);
}

/// Once for each: it does so at its next commit.
void PairKeeper::hand_over(const link::TenantView& tenant) {
  if (asked_for_ == tenant.standby) return;
  if (link_->ask(abi::HandOver{options_.name})) {
    asked_for_ = tenant.standby;
  } else {
    look_in(look_pause);
  }
}

void PairKeeper::note_ends() {
  for (const auto& process : processes_) {
    if (process->failure()) {
      note_failure(*process);
    } else if (process->exit()) {
      note_exit(process->pid(), process->role(), *process->exit());
    }
  }
  std::erase_if(processes_, [](const auto& process) { return process->has_ended(); });
}

void PairKeeper::note_failure(const TenantProcess& process) {
  small_.erase(process.pid());
  started_.erase(process.pid());
  if (process.role() == abi::Role::Active) {
    not_started_ = process.failure();
    return;
  }
  next_standby_ = clock_.now() + backoff_.after_failure(Nanoseconds(0));
  complain(fmt::format("no standby for '{}': {}", options_.name, to_string(*process.failure())));
}

void PairKeeper::note_exit(pid_t pid, abi::Role role, const os::ExitStatus& exit) {
  const auto started = started_.extract(pid);
  if (started.empty()) {
    if (role == abi::Role::Active) ends_[pid] = exit;  // it was told to end before it was started
    return;
  }
  last_ended_ = pid;
  ends_[pid] = exit;
  small_.erase(pid);
  if (actives_.erase(pid) > 0) {
    active_has_ended_ = true;
  } else {
    next_standby_ = clock_.now() + backoff_.after_failure(clock_.now() - started.mapped());
  }
}

/// That an active ends is what standbys are for, unless none of them gets any further.
void PairKeeper::note_progress(const std::optional<link::TenantView>& tenant) {
  if (active_ != 0) actives_.insert(active_);
  if (!std::exchange(active_has_ended_, false) || !tenant) return;
  if (tenant->committed_steps > furthest_) {
    furthest_ = tenant->committed_steps;
    backoff_.reset();
  } else {
    next_standby_ = clock_.now() + backoff_.after_failure(Nanoseconds(0));
  }
}

// --- ends
// -----------------------------------------------------------------------------------------------------------

/// A standby is dismissed by the agent; one that has not even joined may not have heard of it.
void PairKeeper::await_end_of_others(pid_t who_finished) {
  if (patience_) return;
  patience_ = loop_->after_or_now(end_patience, [this, who_finished] {
    for (const auto& process : processes_) {
      if (process->pid() != who_finished) process->pass_on(SIGTERM);
    }
  });
}

void PairKeeper::end_all() {
  if (patience_) return;
  for (const auto& process : processes_) process->pass_on(SIGTERM);
  patience_ = loop_->after_or_now(end_patience, [this] { signal_all(SIGKILL); });
}

void PairKeeper::signal_all(int number) {
  for (const auto& process : processes_) process->signal(number);
}

std::vector<pid_t> PairKeeper::running() const {
  std::vector<pid_t> pids;
  for (const auto& process : processes_) {
    if (process->pid() != 0 && !process->has_ended()) pids.push_back(process->pid());
  }
  return pids;
}

/// Before it is adopted the agent may not know it, and in a PID namespace of our own nor do we know its
/// number there.
bool PairKeeper::is_starting() const {
  return std::ranges::any_of(
      processes_, [](const auto& process) { return !process->is_adopted() && !process->has_ended(); });
}

int PairKeeper::exit_status() const {
  for (const pid_t pid : {finished_, active_, last_ended_}) {
    if (const auto found = ends_.find(pid); found != ends_.end()) return status_of(found->second);
  }
  return 1;
}

}  // namespace firebreak::cli
