// SPDX-License-Identifier: Apache-2.0
#include "agent/loop/orderly_end.h"

#include <signal.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "ground/os/processes.h"

namespace firebreak::agent {
namespace {

/// Why MPS cannot be asked about a process in this state; empty: it can. It needs the client's own thread.
std::string why_not_asked(os::Kernel& kernel, pid_t pid) {
  const char state = os::state_in(kernel, os::proc_folder(pid));
  if (state == 0 || state == 'Z' || state == 'X') return "it is dead";
  if (state == 'T' || state == 't') return "it is stopped";
  return {};
}

}  // namespace

OrderlyEnd::OrderlyEnd(os::EventLoop& loop, os::Kernel& kernel, Domains& domains,
                       std::shared_ptr<const os::Fd> process, EndPlan plan, std::function<void()> on_harmless)
    : loop_(loop),
      kernel_(kernel),
      domains_(domains),
      process_(std::move(process)),
      plan_(std::move(plan)),
      on_harmless_(std::move(on_harmless)) {}

Result<std::shared_ptr<OrderlyEnd>> OrderlyEnd::begin(os::EventLoop& loop, os::Kernel& kernel,
                                                      Domains& domains, std::shared_ptr<const os::Fd> process,
                                                      EndPlan plan, std::function<void()> on_harmless) {
  const Status there = kernel.send_signal(*process, 0);  // sends none, and fails for who is not there
  if (!there && there.error().code == ErrorCode::NotFound)
    return fail(ErrorCode::NotFound, "process " + std::to_string(plan.pid) + " is gone");
  std::shared_ptr<OrderlyEnd> end(
      new OrderlyEnd(loop, kernel, domains, std::move(process), std::move(plan), std::move(on_harmless)));
  end->start();
  return end;
}

void OrderlyEnd::start() {
  if (plan_.fault_lasts <= Nanoseconds(0)) return terminate();
  note("waited for a fault to pass");
  next_ = after(plan_.fault_lasts, [this] { terminate(); });
}

void OrderlyEnd::terminate() {
  const std::string why_not = why_not_asked(kernel_, plan_.pid);
  if (!why_not.empty()) {
    note("MPS not asked, since " + why_not);
    return ask_it_to_end();
  }
  waits_for_mps_ = true;
  // The client was seen never to answer, so the time is taken here as well.
  next_ =
      after(plan_.terminate_timeout, [this] { terminated(fail(ErrorCode::Timeout, "MPS does not answer")); });
  domains_.terminate_client(plan_.domain, plan_.pid, plan_.terminate_timeout,
                            [self = weak_from_this()](const Status& status) {
                              if (const auto end = self.lock()) end->terminated(status);
                            });
}

void OrderlyEnd::terminated(const Status& status) {
  if (!std::exchange(waits_for_mps_, false)) return;
  const bool no_client = !status && status.error().code == ErrorCode::NotFound;
  if (status) note("MPS took it off the GPU");
  if (no_client) note("no client of MPS");
  if (!status && !no_client) {
    note("MPS did not take it off the GPU");
    spdlog::warn("process {} ends with what it has on the GPU: {}", plan_.pid, to_string(status.error()));
  }
  harmless_ = status || no_client;
  if (harmless_ && on_harmless_) on_harmless_();
  ask_it_to_end();
}

void OrderlyEnd::ask_it_to_end() {
  send(SIGTERM, "SIGTERM");
  next_ = after(plan_.grace, [this] { send(SIGKILL, "SIGKILL"); });
}

void OrderlyEnd::send(int signal, const char* name) {
  if (const Status sent = kernel_.send_signal(*process_, signal); !sent) {
    // The process may just have ended: then its exit is about to be told.
    return spdlog::debug("{} to process {}: {}", name, plan_.pid, to_string(sent.error()));
  }
  note(name);
}

void OrderlyEnd::note(const std::string& step) { steps_ += (steps_.empty() ? "" : ", ") + step; }

os::Watch OrderlyEnd::after(Nanoseconds delay, std::function<void()> callback) {
  auto timer = loop_.after(delay, std::move(callback));
  if (timer) return std::move(*timer);
  spdlog::error("no timer for the end of process {}: {}", plan_.pid, to_string(timer.error()));
  return {};
}

}  // namespace firebreak::agent
