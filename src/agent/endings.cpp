// SPDX-License-Identifier: Apache-2.0
#include "agent/endings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "hold/gpu_descriptors.h"
#include "os/processes.h"

namespace firebreak::agent {
namespace {

constexpr Milliseconds longest_grace{60'000};
/// From the moment when a process's connection closes, on a busy machine.
constexpr Milliseconds ending_takes{50};
/// A process looks for the agent every 20 ms, and gives it 5 s to answer.
constexpr Milliseconds standby_returns_within{15'000};

}  // namespace

Status Endings::end_process(const abi::EndProcess& request) {
  const auto pid = static_cast<pid_t>(request.pid);
  if (!at_.follower.is_ours(pid) || at_.processes.living(pid)->tenant() != request.tenant) {
    return fail(ErrorCode::NotFound, fmt::format("tenant '{}' has no process {}", request.tenant, pid));
  }
  end_orderly(pid, "its operator wants it", at_.options.end_grace);
  return {};
}

void Endings::end_tenant(Connection& connection, const abi::EndTenant& request) {
  Tenant* found = at_.tenants.find(request.tenant);
  if (found == nullptr) {
    return at_.answers.give(
        connection, fail(ErrorCode::NotFound, fmt::format("there is no tenant '{}'", request.tenant)));
  }
  Waiter waiter{connection.asker(), {}, {}};
  for (const auto& all : {at_.processes.all_living(), at_.processes.all_dying()}) {
    for (const Process* each : all) {
      if (each->tenant() == request.tenant) waiter.waiting.insert(each->pid());
    }
  }
  const bool nobody_is_left = waiter.waiting.empty();
  if (!nobody_is_left) waiters_.push_back(std::move(waiter));
  end_whole(*found, "its operator wants it", std::min(Milliseconds(request.grace_ms), longest_grace));
  if (!nobody_is_left) return;
  at_.memory.forget_if_empty(request.tenant);
  at_.records.save();
  connection.answer(abi::Ended{"none of its processes was left"});
}

void Endings::end_whole(Tenant& tenant, const std::string& why, Milliseconds grace) {
  tenant.ended_by_us = true;
  at_.pairs.advance(tenant, pair::EventType::ActiveFinished);
  for (const Process* each : at_.processes.all_living()) {
    if (each->tenant() == tenant.name()) end_orderly(each->pid(), why, grace);
  }
}

void Endings::end_orderly(pid_t pid, const std::string& why, Milliseconds grace) {
  Process* process = at_.processes.living(pid);
  if (process == nullptr || process->is_ending()) return;
  EndPlan plan;
  plan.pid = pid;
  plan.domain = process->domain();
  plan.fault_lasts = at_.recent_faults.lasts(process->domain());
  plan.grace = grace;
  auto end = OrderlyEnd::begin(at_.loop, at_.kernel, at_.domains, process->pidfd(), std::move(plan),
                               [this, pid] { at_.detectors.expect_exit(pid); });
  if (!end) {
    // Its exit is about to be told.
    return spdlog::info("process {} of {} cannot be ended: {}", pid, process->tenant(),
                        to_string(end.error()));
  }
  process->end_orderly(std::move(*end));
  abi::Event event;
  event.what = abi::EventKind::Ending;
  event.tenant = process->tenant();
  event.domain = process->domain();
  event.pid = pid;
  event.text = why;
  at_.teller.tell(std::move(event));
}

void Endings::on_closed(const Connection& connection) {
  std::erase_if(waiters_, [&](const Waiter& each) { return each.asker.connection == connection.id(); });
  for (auto& [name, tenant] : at_.tenants.all()) {
    // An active without its connection still serves; its end is seen by its pidfd. A standby without one
    // cannot take over.
    for (Member* member : {&tenant->active, &tenant->old_active}) {
      if (member->connection != connection.id()) continue;
      member->connection = 0;
      end_unless_it_serves(member->pid);
    }
    if (tenant->standby.connection != connection.id()) continue;
    tenant->standby.connection = 0;
    at_.pairs.advance(*tenant, pair::EventType::StandbyExited);
    await_return(*tenant);
  }
}

/// A process that becomes another program lives on without us and without the GPU, and nobody would take over
/// before that program ends. Most often it is just about to end, and then nothing is left to do.
void Endings::end_unless_it_serves(pid_t pid) {
  Process* process = at_.processes.living(pid);
  if (process == nullptr) return;
  auto look = at_.loop.after(ending_takes, [this, pid] {
    const Process* found = at_.processes.living(pid);
    if (found == nullptr || found->is_ending()) return;
    Tenant* tenant = at_.tenants.find(found->tenant());
    if (tenant == nullptr || tenant->pair.phase == pair::Phase::Finished) return;
    const Member& active = tenant->active;
    if (active.pid != pid || active.connection != 0) return;
    const auto on_gpu = hold::gpu_descriptors_of(at_.kernel, pid);
    if (on_gpu && on_gpu->empty())
      at_.pairs.end(active, "it is its tenant's active no more: it has neither us nor the GPU");
  });
  if (!look) return spdlog::error("process {} is not looked at: {}", pid, to_string(look.error()));
  process->look = std::move(*look);
}

/// One without a connection cannot take over, and while it is there no other one is started.
void Endings::await_return(const Tenant& tenant) {
  Process* process = at_.processes.living(tenant.standby.pid);
  if (process == nullptr) return;
  auto look = at_.loop.after(standby_returns_within, [this, name = tenant.name(), pid = tenant.standby.pid] {
    Tenant* found = at_.tenants.find(name);
    if (found == nullptr || found->standby.pid != pid) return;
    if (found->standby.connection == 0)
      at_.pairs.end(found->standby, "a standby that has lost its connection, and did not come back");
  });
  if (!look) return spdlog::error("standby {} is not looked at: {}", process->pid(), to_string(look.error()));
  process->look = std::move(*look);
}

/// A child of fork() may have its connection still: then nobody but its image tells that it is gone.
void Endings::on_other_program(pid_t pid) {
  for (const auto& [name, tenant] : at_.tenants.all()) {
    for (const Member* member : {&tenant->active, &tenant->standby, &tenant->old_active}) {
      if (member->pid != pid || member->connection == 0 || member->image.empty()) continue;
      const std::string image = os::image_of(at_.kernel, pid);
      if (!image.empty() && image != member->image) return at_.server.close(member->connection);
    }
  }
}

void Endings::tell_ended(pid_t pid, const std::string& how) {
  for (Waiter& waiter : waiters_) {
    if (waiter.waiting.erase(pid) == 0) continue;
    waiter.ends.push_back(fmt::format("process {}: {}", pid, how.empty() ? "ended by itself" : how));
    if (!waiter.waiting.empty()) continue;
    at_.server.answer(waiter.asker, abi::Ended{fmt::format("{}", fmt::join(waiter.ends, "; "))});
  }
  std::erase_if(waiters_, [](const Waiter& waiter) { return waiter.waiting.empty(); });
}

}  // namespace firebreak::agent
