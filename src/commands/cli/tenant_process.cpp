// SPDX-License-Identifier: Apache-2.0
#include "commands/cli/tenant_process.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include "ground/os/program.h"

namespace firebreak::cli {

int status_of(const os::ExitStatus& exit) { return exit.signal != 0 ? 128 + exit.signal : exit.exit_code; }

std::unique_ptr<TenantProcess> TenantProcess::start(os::EventLoop& loop, const TenantOptions& options,
                                                    abi::Role role, Callbacks callbacks) {
  std::unique_ptr<TenantProcess> made(new TenantProcess(loop, options, role, std::move(callbacks)));
  made->ask(place_question(options, role), std::max(next_agent_patience, options.domain_patience), nullptr,
            [raw = made.get()](const auto& answer, auto link) { raw->on_placed(answer, std::move(link)); });
  return made;
}

TenantProcess::~TenantProcess() {
  if (pidfd_ && !exit_) (void)os::kill_child(kernel_, pid_, pidfd_);
}

void TenantProcess::ask(abi::Message message, Milliseconds patience, std::unique_ptr<link::AgentLink> first,
                        AgentRequest::Done done) {
  AgentRequest::Question question{options_.socket_path, std::move(message), patience};
  question.awaits_first_agent = pid_ != 0 || options_.domain_patience > Milliseconds(0);
  question.not_yet_patience = options_.domain_patience;
  question.on_not_yet = [](const std::string& why) { fmt::print(stderr, "firebreak: waits: {}\n", why); };
  request_ = std::make_unique<AgentRequest>(loop_, std::move(question), std::move(first), std::move(done));
}

void TenantProcess::on_placed(const Result<link::Answer>& answer, std::unique_ptr<link::AgentLink> link) {
  if (!answer) return give_up(answer.error());
  const auto* placed = std::get_if<abi::Placed>(&answer->message);
  if (placed == nullptr) return give_up({ErrorCode::Protocol, "the agent did not say where to run", {}});
  if (auto spawned = spawn(*placed); !spawned) return give_up(spawned.error());
  if (auto watched = watch(); !watched) return give_up(watched.error());
  // By the next agent where this one is gone before it has answered: it knows where the process was told to
  // run. One that has done so already says so again.
  ask(adopt_question(options_, role_, pid_), Milliseconds(placed->agent_returns_ms), std::move(link),
      [this](const auto& adopted, auto its) { on_adopted(adopted, std::move(its)); });
  if (callbacks_.on_started) callbacks_.on_started();
}

Status TenantProcess::spawn(const abi::Placed& placed) {
  auto request = start_request(options_, placed, notes_);
  if (!request) return propagate(request);
  request->standard_input = 0;
  auto held = os::spawn_held(*request);
  if (!held) return propagate(held);
  pid_ = held->pid;
  held_ = std::move(*held);
  auto pidfd = kernel_.pidfd_open(pid_);
  if (!pidfd) return propagate(pidfd);
  pidfd_ = std::move(*pidfd);
  return {};
}

Status TenantProcess::watch() {
  auto watch = loop_.watch_readable(pidfd_.get(), [this] { on_exit(); });
  if (!watch) return propagate(watch);
  watch_ = std::move(*watch);
  return {};
}

/// Once it is adopted, so that whatever its program does is seen from its first instruction on.
void TenantProcess::begin() {
  os::HeldStart held = std::move(*held_);
  held_.reset();
  const Status began = os::let_begin(std::move(held));
  if (began) return;
  watch_.cancel();
  pidfd_.reset();  // it has been reaped
  give_up(began.error());
}

void TenantProcess::on_adopted(const Result<link::Answer>& answer, std::unique_ptr<link::AgentLink> link) {
  if (!answer) return give_up(answer.error());
  is_adopted_ = true;
  const auto* done = std::get_if<abi::Done>(&answer->message);
  if (done != nullptr) agents_number_ = static_cast<pid_t>(done->pid);
  link_ = std::move(link);
  for (const std::string& note : notes_) (void)link_->tell(abi::Output{pid_, note + "\n"});
  begin();
  if (callbacks_.on_adopted) callbacks_.on_adopted();
}

/// One that has ended cannot be adopted any more.
void TenantProcess::on_exit() {
  const auto reaped = kernel_.try_wait(pid_);
  exit_ = reaped && *reaped ? **reaped : os::ExitStatus{1, 0};
  end_asking();
  watch_.cancel();
  if (callbacks_.on_end) callbacks_.on_end();
}

/// A process that nobody adopts is not left alone.
void TenantProcess::give_up(Error why) {
  if (pidfd_) {
    watch_.cancel();
    (void)os::kill_child(kernel_, pid_, pidfd_);
    pidfd_.reset();
  }
  failure_ = std::move(why);
  end_asking();
  if (callbacks_.on_end) callbacks_.on_end();
}

void TenantProcess::end_asking() {
  request_.reset();
  held_.reset();
}

void TenantProcess::signal(int number) {
  if (has_ended()) return;
  if (pid_ != 0) return (void)kernel_.send_signal(pidfd_, number);
  exit_ = os::ExitStatus{0, number};
  end_asking();
  if (callbacks_.on_end) callbacks_.on_end();
}

void TenantProcess::pass_on(int number) {
  // Whose program has not begun harms nobody.
  const bool is_request = number == SIGTERM && is_adopted_ && !std::exchange(asked_for_end_, true);
  is_request ? ask_for_end() : signal(number);
}

/// It may be another agent by now, or one that is about to come: without an agent, the end of a kernel under
/// way is its neighbours' end.
void TenantProcess::ask_for_end() {
  ask(abi::EndProcess{options_.name, pid_}, next_agent_patience, nullptr,
      [this](const auto& answer, const auto&) {
        if (!answer) signal(SIGTERM);
      });
}

}  // namespace firebreak::cli
