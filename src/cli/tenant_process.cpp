// SPDX-License-Identifier: Apache-2.0
#include "cli/tenant_process.h"

#include <signal.h>

#include <span>
#include <utility>

#include "fault/core_dump.h"
#include "guard/guard.h"
#include "guard/trial.h"
#include "os/program.h"
#include "os/self.h"
#include "platform/platform.h"

namespace firebreak::cli {
namespace {

/// A kernel's mangled name may be long; what it begins with is enough, and fits into a message.
constexpr std::size_t longest_line_told = 4096;
/// Between two looks whether the next agent is there.
constexpr Milliseconds look_pause{20};
/// A service manager has started the next agent by then; who asks for an end has little patience.
constexpr Milliseconds next_agent_patience{5'000};

/// What the tenant's environment will have: what the agent says goes before our own.
std::optional<std::string> tenant_variable(const abi::Placed& placed, const std::string& name) {
  for (const auto& [its_name, value] : placed.environment) {
    if (its_name == name) return value;
  }
  return os::environment_variable(name);
}

/// Null: CUDA will print nothing about faults there, and the tenant's standard error is ours.
Result<std::unique_ptr<ErrorRelay>> relay_for(const abi::Placed& placed) {
  if (tenant_variable(placed, fault::core_dump_progress_variable) != "1") return nullptr;
  return ErrorRelay::create();
}

/// Tells the agent of the lines that name who faulted, and stops where it does not listen any more.
ErrorRelay::OnLine core_dump_teller(client::AgentLink& link, pid_t pid) {
  return [&link, pid, listens = true](std::string_view line) mutable {
    if (!listens || !fault::is_about_exception(line)) return;
    const std::string text(line.substr(0, longest_line_told));
    listens = link.tell(abi::Output{pid, text + "\n"}).has_value();
  };
}

/// What the tenant is guarded by; whether that works here is known by then, and the guard itself says so.
Status prepare_guard(os::SpawnRequest& request, bool shares_memory) {
  auto preload = platform::guard_preload();
  if (!preload) return propagate(preload);
  request.environment.push_back(std::move(*preload));
  if (shares_memory) request.environment.emplace_back(guard::sharing_variable, "1");
  const auto platform = platform::choose();
  if (!platform) return propagate(platform);
  (void)guard::known_or_tried_verdict(*platform->kernel, platform::guard_trial(*platform));
  return {};
}

abi::StrayPolicy stray_policy(const TenantOptions& options) {
  return options.report_only ? abi::StrayPolicy::Report : abi::StrayPolicy::Default;
}

}  // namespace

int status_of(const os::ExitStatus& exit) { return exit.signal != 0 ? 128 + exit.signal : exit.exit_code; }

Result<std::unique_ptr<TenantProcess>> TenantProcess::start(os::EventLoop& loop, const TenantOptions& options,
                                                            abi::Role role, std::function<void()> on_end) {
  std::unique_ptr<TenantProcess> made(new TenantProcess(options));
  auto link = client::AgentLink::connect(options.socket_path);
  if (!link) return propagate(link);
  made->link_ = std::move(*link);
  auto answer =
      made->link_->ask(abi::Place{options.name, role, options.gpu, options.sm_percent, options.memory_mib});
  if (!answer) return propagate(answer);
  const auto* placed = std::get_if<abi::Placed>(&answer->message);
  if (placed == nullptr) return fail(ErrorCode::Protocol, "the agent did not say where to run");
  if (auto spawned = made->spawn(options, *placed); !spawned) return propagate(spawned);
  const abi::Adopt adoption{options.name, role, made->pid_, stray_policy(options)};
  const Status adopted = made->be_adopted(adoption, Milliseconds(placed->agent_returns_ms));
  if (!adopted) return propagate(adopted);
  if (made->relay_) {
    const Status relayed = made->relay_->start(core_dump_teller(*made->link_, made->pid_));
    if (!relayed) return propagate(relayed);
  }
  if (auto watched = made->watch(loop, std::move(on_end)); !watched) return propagate(watched);
  return made;
}

TenantProcess::~TenantProcess() {
  if (pidfd_ && !exit_) (void)os::kill_child(kernel_, pid_, pidfd_);
}

Status TenantProcess::spawn(const TenantOptions& options, const abi::Placed& placed) {
  auto relay = relay_for(placed);
  if (!relay) return propagate(relay);
  relay_ = std::move(*relay);
  os::SpawnRequest request;
  request.command = options.command;
  request.environment = placed.environment;
  if (options.guard) {
    if (const Status prepared = prepare_guard(request, options.guard_ipc); !prepared) return prepared;
  }
  request.standard_input = 0;
  request.standard_error = relay_ ? relay_->tenant_end() : -1;
  const auto pid = kernel_.spawn(request);
  if (!pid) return propagate(pid);
  pid_ = *pid;
  auto pidfd = kernel_.pidfd_open(pid_);
  if (!pidfd) return propagate(pidfd);
  pidfd_ = std::move(*pidfd);
  return {};
}

/// By the next agent where this one is gone before it has answered: it knows where the process was told to
/// run. One that has done so already says so again. Of one that has ended meanwhile there is nothing to
/// adopt.
Status TenantProcess::be_adopted(const abi::Adopt& adoption, Milliseconds patience) {
  return ask_this_or_next(link_, adoption, patience);
}

/// `link` becomes that of the next agent where it is none, or its agent is gone. Well, too, where our process
/// has ended meanwhile.
Status TenantProcess::ask_this_or_next(std::unique_ptr<client::AgentLink>& link, const abi::Message& message,
                                       Milliseconds patience) {
  const Monotonic deadline = SystemClock().now() + patience;
  for (;;) {
    Result<client::Answer> answer = fail(ErrorCode::Unavailable, "there is no agent");
    if (link) answer = link->ask(message);
    if (answer) return {};
    const bool is_gone = answer.error().code == ErrorCode::Unavailable || link->lost();
    if (!is_gone || SystemClock().now() >= deadline) return propagate(answer);
    if (has_ended_within(look_pause)) return {};
    if (auto next = client::AgentLink::connect(socket_path_)) link = std::move(*next);
  }
}

bool TenantProcess::has_ended_within(Milliseconds time) {
  const int process = pidfd_.get();
  const auto ended = kernel_.poll(std::span(&process, 1), time);
  return ended && !ended->empty();
}

Status TenantProcess::watch(os::EventLoop& loop, std::function<void()> on_end) {
  auto watch = loop.watch_readable(pidfd_.get(), [this, on_end = std::move(on_end)] {
    const auto reaped = kernel_.try_wait(pid_);
    exit_ = reaped && *reaped ? **reaped : os::ExitStatus{1, 0};
    const auto tell = on_end;  // what is cancelled goes
    watch_.cancel();
    tell();
  });
  if (!watch) return propagate(watch);
  watch_ = std::move(*watch);
  return {};
}

void TenantProcess::signal(int number) {
  if (!exit_) (void)kernel_.send_signal(pidfd_, number);
}

void TenantProcess::pass_on(int number) {
  const bool is_request = number == SIGTERM && !std::exchange(asked_for_end_, number == SIGTERM);
  if (!is_request || !ask_for_end()) signal(number);
}

/// The agent answers before anything of the end is done, so this does not keep us. It may be another agent by
/// now, or one that is about to come: without an agent, the end of a kernel under way is its neighbours' end.
bool TenantProcess::ask_for_end() {
  auto connected = client::AgentLink::connect(socket_path_);
  std::unique_ptr<client::AgentLink> link = connected ? std::move(*connected) : nullptr;
  return ask_this_or_next(link, abi::EndProcess{name_, pid_}, next_agent_patience).has_value();
}

}  // namespace firebreak::cli
