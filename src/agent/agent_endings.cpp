// SPDX-License-Identifier: Apache-2.0
/// Processes and whole tenants that are told to end, and who waits for it.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "agent/agent.h"
#include "hold/gpu_descriptors.h"

namespace firebreak::agent {
namespace {

constexpr Milliseconds longest_grace{60'000};
/// From the moment when a process's connection closes, on a busy machine.
constexpr Milliseconds ending_takes{50};

}  // namespace

Status Agent::end_process(const abi::EndProcess& request) {
  const auto pid = static_cast<pid_t>(request.pid);
  if (!follower_.is_ours(pid) || processes_.living(pid)->tenant() != request.tenant) {
    return fail(ErrorCode::NotFound, fmt::format("tenant '{}' has no process {}", request.tenant, pid));
  }
  end_orderly(pid, "its operator wants it", options_.end_grace);
  return {};
}

void Agent::end_tenant(Connection& connection, const abi::EndTenant& request) {
  Tenant* found = tenants_.find(request.tenant);
  if (found == nullptr) {
    return answers_.give(connection,
                         fail(ErrorCode::NotFound, fmt::format("there is no tenant '{}'", request.tenant)));
  }
  EndWaiter waiter{connection.asker(), {}, {}};
  for (const auto& all : {processes_.all_living(), processes_.all_dying()}) {
    for (const Process* each : all) {
      if (each->tenant() == request.tenant) waiter.waiting.insert(each->pid());
    }
  }
  const bool nobody_is_left = waiter.waiting.empty();
  if (!nobody_is_left) end_waiters_.push_back(std::move(waiter));
  end_whole(*found, "its operator wants it", std::min(Milliseconds(request.grace_ms), longest_grace));
  if (!nobody_is_left) return;
  memory_.forget_if_empty(request.tenant);
  records_.save();
  connection.answer(abi::Ended{"none of its processes was left"});
}

/// With its standby, which is not to take over.
void Agent::end_whole(Tenant& tenant, const std::string& why, Milliseconds grace) {
  tenant.ended_by_us = true;
  pairs_.advance(tenant, pair::EventType::ActiveFinished);
  for (const Process* each : processes_.all_living()) {
    if (each->tenant() == tenant.name()) end_orderly(each->pid(), why, grace);
  }
}

void Agent::end_orderly(pid_t pid, const std::string& why, Milliseconds grace) {
  Process* process = processes_.living(pid);
  if (process == nullptr || process->is_ending()) return;
  EndPlan plan;
  plan.pid = pid;
  plan.domain = process->domain();
  plan.fault_lasts = recent_faults_.lasts(process->domain());
  plan.grace = grace;
  auto end = OrderlyEnd::begin(loop_, kernel_, domains_, std::move(plan),
                               [this, pid] { detectors_.expect_exit(pid); });
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
  teller_.tell(std::move(event));
}

/// A process that becomes another program lives on without us and without the GPU, and nobody would take over
/// before that program ends. Most often it is just about to end, and then nothing is left to do.
void Agent::end_unless_it_serves(pid_t pid) {
  Process* process = processes_.living(pid);
  if (process == nullptr) return;
  auto look = loop_.after(ending_takes, [this, pid] {
    const Process* found = processes_.living(pid);
    if (found == nullptr || found->is_ending()) return;
    Tenant* tenant = tenants_.find(found->tenant());
    if (tenant == nullptr || tenant->pair.phase == pair::Phase::Finished) return;
    const Member& active = tenant->active;
    if (active.pid != pid || active.connection != 0) return;
    const auto on_gpu = hold::gpu_descriptors_of(kernel_, pid);
    if (on_gpu && on_gpu->empty())
      pairs_.end(active, "it is its tenant's active no more: it has neither us nor the GPU");
  });
  if (!look) return spdlog::error("process {} is not looked at: {}", pid, to_string(look.error()));
  process->look = std::move(*look);
}

/// A child of fork() may have its connection still: then nobody but its image tells that it is gone.
void Agent::on_other_program(pid_t pid) {
  for (const auto& [name, tenant] : tenants_.all()) {
    for (const Member* member : {&tenant->active, &tenant->standby, &tenant->old_active}) {
      if (member->pid != pid || member->connection == 0 || member->image.empty()) continue;
      const std::string image = image_of(kernel_, pid);
      if (!image.empty() && image != member->image) return server_.close(member->connection);
    }
  }
}

void Agent::tell_ended(pid_t pid, const std::string& how) {
  for (EndWaiter& waiter : end_waiters_) {
    if (waiter.waiting.erase(pid) == 0) continue;
    waiter.ends.push_back(fmt::format("process {}: {}", pid, how.empty() ? "ended by itself" : how));
    if (!waiter.waiting.empty()) continue;
    server_.answer(waiter.asker, abi::Ended{fmt::format("{}", fmt::join(waiter.ends, "; "))});
  }
  std::erase_if(end_waiters_, [](const EndWaiter& waiter) { return waiter.waiting.empty(); });
}

}  // namespace firebreak::agent
