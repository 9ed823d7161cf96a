// SPDX-License-Identifier: Apache-2.0
#include "agent/resting/resting.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "agent/resting/look_schedule.h"

namespace firebreak::agent {

/// Whoever may be asked now.
Result<pid_t> Resting::find(const abi::Rest& request) const {
  const Tenant* const tenant = at_.tenants.find(request.tenant);
  if (tenant == nullptr || tenant->active.pid == 0)
    return fail(ErrorCode::NotFound, fmt::format("there is no process of tenant '{}'", request.tenant));
  const pid_t pid = tenant->active.pid;
  const SpareView* const view = at_.spares.view_of(pid);
  if (tenant->active.connection != 0 && view == nullptr)
    return fail(ErrorCode::Unsupported, "it uses libfirebreak, and such tenants do not rest");
  if (view == nullptr)
    return fail(ErrorCode::Unsupported,
                "it has no spare driver instance, or its program has not come to the GPU yet");
  if (view->deepest_rest() == abi::RestLevel::Awake)
    return fail(ErrorCode::Unsupported, "it was started by an older version of Firebreak");
  if (pending_.contains(pid) || view->is_asked_to_rest())
    return fail(ErrorCode::Unavailable, "it was asked before, and has not answered yet");
  return pid;
}

void Resting::ask(Connection& connection, const abi::Rest& request) {
  const auto pid = find(request);
  if (!pid) return at_.answers.give(connection, propagate(pid));
  const SpareView& view = *at_.spares.view_of(*pid);
  Pending pending{connection.asker(), request.tenant, request.level, view.rest()};
  pending.question = view.ask_to_rest(request.level);
  pending_[*pid] = std::move(pending);
  newest_question_ = at_.clock.now();
  const bool looks_soon = looking_ && next_look_ <= newest_question_ + shortest_between_looks;
  if (!looks_soon) look_later();
}

void Resting::look_later() {
  const Monotonic now = at_.clock.now();
  const Nanoseconds wait = until_next_look(now - newest_question_);
  next_look_ = now + wait;
  looking_ = at_.loop.after_or_now(wait, [this] { look(); });
}

/// Programs answer by their pages alone.
void Resting::look() {
  std::vector<pid_t> answered;
  for (const auto& [pid, pending] : pending_) {
    const SpareView* const view = at_.spares.view_of(pid);
    if (view != nullptr && view->is_rest_answered(pending.question)) answered.push_back(pid);
  }
  for (const pid_t pid : answered) {
    const auto pending = pending_.extract(pid);
    end(pid, pending.mapped(), *at_.spares.view_of(pid));
  }
  if (pending_.empty()) return looking_.cancel();
  look_later();
}

void Resting::end(pid_t pid, const Pending& pending, const SpareView& view) {
  const std::string refusal = view.rest_refusal();
  const bool is_so = view.rest() == pending.wanted;
  if (is_so && pending.before != pending.wanted) tell(pid, pending, view);
  if (is_so) return at_.server.answer(pending.asker, abi::Done{});
  at_.server.answer(pending.asker, abi::Refused{refusal.empty() ? "it has not done so" : refusal});
}

void Resting::tell(pid_t pid, const Pending& pending, const SpareView& view) {
  abi::Event event;
  event.what = pending.wanted == abi::RestLevel::Awake ? abi::EventKind::Awake : abi::EventKind::Rests;
  event.tenant = pending.tenant;
  event.pid = pid;
  const Process* const process = at_.processes.living(pid);
  if (process != nullptr) event.domain = process->domain();
  const std::string kept = view.rest_host_bytes() == 0
                               ? ""
                               : fmt::format(", {} MiB in the host's memory", view.rest_host_bytes() >> 20U);
  event.text = fmt::format("{}{}; {}", abi::to_string(pending.wanted), kept, view.last_rest());
  at_.teller.tell(std::move(event));
  if (pending.wanted > abi::RestLevel::Still) on_rest_(pid);
}

void Resting::on_exit(pid_t pid) {
  const auto pending = pending_.extract(pid);
  if (pending) at_.server.answer(pending.mapped().asker, abi::Refused{"its process ended first"});
}

}  // namespace firebreak::agent
