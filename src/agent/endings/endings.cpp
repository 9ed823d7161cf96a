// SPDX-License-Identifier: Apache-2.0
#include "agent/endings/endings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "agent/endings/hold/gpu_descriptors.h"
#include "ground/os/looks.h"
#include "ground/os/processes.h"

namespace firebreak::agent {
namespace {

constexpr Milliseconds longest_grace{60'000};
/// Time of an end on a busy machine, from the moment when the process's connection closes.
constexpr Milliseconds ending_takes{50};

/// Finds the GPU's descriptors among the first of a process. Returns whether it has no more.
Result<bool> first_on_gpu(os::Kernel& kernel, pid_t pid, hold::Numbers& on_gpu) {
  int from = 0;
  std::size_t looked_at = 0;
  for (;;) {
    const auto are_all = hold::add_gpu_descriptors_of(kernel, pid, from, on_gpu, looked_at);
    if (!are_all || from == 0 || looked_at >= os::most_descriptors_in_a_look) return are_all;
  }
}

}  // namespace

/// A program may have become another user's since it was adopted, root's above all: who could not end it by
/// a signal does not end it through us.
Status Endings::may_end(const Connection& connection, pid_t pid) const {
  if (connection.asking().entrance == Entrance::Operators) return {};
  const auto status = at_.kernel.read_file(os::proc_folder(pid) + "/status");
  if (status && os::is_of_user_alone(*status, connection.peer().uid)) return {};
  return fail(ErrorCode::PermissionDenied, fmt::format("process {} is another user's by now", pid));
}

Status Endings::end_process(const Connection& connection, const abi::EndProcess& request) {
  const auto pid = static_cast<pid_t>(request.pid);
  if (!at_.follower.is_ours(pid) || at_.processes.living(pid)->tenant() != request.tenant) {
    return fail(ErrorCode::NotFound, fmt::format("tenant '{}' has no process {}", request.tenant, pid));
  }
  if (auto may = may_end(connection, pid); !may) return may;
  end_orderly(pid, "its operator wants it", at_.options.end_grace);
  return {};
}

void Endings::end_tenant(Connection& connection, const abi::EndTenant& request) {
  Tenant* found = at_.tenants.find(request.tenant);
  if (found == nullptr) {
    return at_.answers.give(
        connection, fail(ErrorCode::NotFound, fmt::format("there is no tenant '{}'", request.tenant)));
  }
  if (auto may = request.force ? Status() : at_.weights.may_end(*found); !may)
    return at_.answers.give(connection, may);
  for (const Process* each : at_.processes.all_living()) {
    if (each->tenant() != request.tenant) continue;
    if (auto may = may_end(connection, each->pid()); !may) return at_.answers.give(connection, may);
  }
  std::set<pid_t> waiting = processes_of(request.tenant);
  const bool nobody_is_left = waiting.empty();
  if (!nobody_is_left) {
    const auto done = [this, asker = connection.asker()](const std::string& ends) {
      at_.server.answer(asker, abi::Ended{ends});
    };
    waiters_.push_back({connection.id(), done, std::move(waiting)});
  }
  end_whole(*found, "its operator wants it", std::min(Milliseconds(request.grace_ms), longest_grace));
  if (!nobody_is_left) return;
  at_.memory.forget_if_empty(request.tenant);
  at_.records.save();
  connection.answer(abi::Ended{"none of its processes was left"});
}

void Endings::end_all(const std::string& why, Milliseconds grace,
                      std::function<void(const std::string&)> done) {
  std::set<pid_t> waiting = processes_of({});
  const bool nobody_is_left = waiting.empty();
  if (!nobody_is_left) waiters_.push_back({0, done, std::move(waiting)});
  for (const auto& [name, tenant] : at_.tenants.all())
    end_whole(*tenant, why, std::min(grace, longest_grace));
  at_.records.save();
  if (nobody_is_left) done({});
}

std::set<pid_t> Endings::processes_of(const std::string& tenant) const {
  std::set<pid_t> found;
  for (const auto& all : {at_.processes.all_living(), at_.processes.all_dying()}) {
    for (const Process* each : all) {
      if (!each->tenant().empty() && (tenant.empty() || each->tenant() == tenant)) found.insert(each->pid());
    }
  }
  return found;
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
  std::erase_if(waiters_, [&](const Waiter& each) { return each.connection == connection.id(); });
  for (auto& [name, tenant] : at_.tenants.all()) {
    for (Member* member : {&tenant->active, &tenant->old_active, &tenant->standby}) {
      if (member->connection != connection.id()) continue;
      member->connection = 0;
      has_hung_up(*tenant, *member);
    }
  }
}

/// An active without its connection still serves; its end is seen by its pidfd. A standby without one cannot
/// take over.
void Endings::has_hung_up(Tenant& tenant, const Member& member) {
  if (&member != &tenant.standby) return end_unless_it_serves(member.pid);
  at_.pairs.advance(tenant, pair::EventType::StandbyExited);
  await_return(tenant.name(), member.pid, at_.options.comes_back_within);
}

/// A process that becomes another program lives on without us and without the GPU, and nobody would take over
/// before that program ends. Most often it is just about to end, and then nothing is left to do.
void Endings::end_unless_it_serves(pid_t pid) {
  look_later(pid, ending_takes, [this, pid] {
    const Process* found = at_.processes.living(pid);
    if (found == nullptr || found->is_ending()) return;
    Tenant* tenant = at_.tenants.find(found->tenant());
    if (tenant == nullptr || tenant->pair.phase == pair::Phase::Finished) return;
    const Member& active = tenant->active;
    if (active.pid != pid || active.connection != 0) return;
    hold::Numbers on_gpu;
    const auto are_all = first_on_gpu(at_.kernel, pid, on_gpu);
    if ((are_all && *are_all && on_gpu.empty()) || is_other_program(active))
      at_.pairs.end(
          active, "it is its tenant's active no more: it has neither us nor the GPU, or is another program");
  });
}

/// Events before they are back are not lost: the shared page wakes whoever waits for a promotion.
void Endings::await_those_of_before(const Tenant& tenant) {
  const Member& standby = tenant.standby;
  const bool had_joined = !standby.image.empty() || tenant.pair.standby != pair::Standby::None;
  if (standby.pid != 0 && standby.connection == 0 && had_joined) {
    look_later(standby.pid, at_.options.stands_by_without,
               [this, name = tenant.name(), pid = standby.pid] { give_up_if_away(name, pid); });
  }
  if (tenant.pair.phase == pair::Phase::Promoting && tenant.active.connection == 0)
    await_return(tenant.name(), tenant.active.pid, at_.options.comes_back_within);
}

/// The process may be the active by now.
void Endings::give_up_if_away(const std::string& name, pid_t pid) {
  Tenant* found = at_.tenants.find(name);
  if (found == nullptr) return;
  const bool is_away = found->standby.pid == pid && found->standby.connection == 0;
  if (is_away && found->pair.standby == pair::Standby::Ready) {
    at_.pairs.advance(*found, pair::EventType::StandbyExited);
    at_.records.save();
  }
  await_return(name, pid, at_.options.comes_back_within - at_.options.stands_by_without);
}

/// A standby without a connection cannot take over, and while it is there no other one is started.
void Endings::await_return(const std::string& name, pid_t pid, Milliseconds patience) {
  look_later(pid, patience, [this, name, pid] {
    const Tenant* found = at_.tenants.find(name);
    if (found == nullptr) return;
    const auto is_away = [pid](const Member& member) { return member.pid == pid && member.connection == 0; };
    if (is_away(found->standby))
      at_.pairs.end(found->standby, "a standby that has lost its connection, and did not come back");
    const bool has_not_begun = found->pair.phase == pair::Phase::Promoting && !found->has_begun();
    if (is_away(found->active) && has_not_begun)
      at_.pairs.end(found->active, "it was promoted, has not begun its work, and did not come back");
  });
}

void Endings::look_later(pid_t pid, Milliseconds delay, std::function<void()> look) {
  Process* process = at_.processes.living(pid);
  if (process == nullptr) return;
  auto timer = at_.loop.after(delay, std::move(look));
  if (!timer) return spdlog::error("process {} is not looked at: {}", pid, to_string(timer.error()));
  process->look = std::move(*timer);
}

/// A child of fork() may have its connection still: then nobody but its image tells that it is gone. One that
/// an agent before has left to us has none.
void Endings::on_other_program(pid_t pid) {
  for (const auto& [name, tenant] : at_.tenants.all()) {
    for (const Member* member : {&tenant->active, &tenant->standby, &tenant->old_active}) {
      if (member->pid != pid || !is_other_program(*member)) continue;
      return member->connection != 0 ? at_.server.close(member->connection) : has_hung_up(*tenant, *member);
    }
  }
}

bool Endings::is_other_program(const Member& member) const {
  const std::string image = os::image_of(at_.kernel, member.pid);
  return !member.image.empty() && !image.empty() && image != member.image;
}

void Endings::tell_ended(pid_t pid, const std::string& how) {
  std::vector<Waiter> done;
  for (Waiter& waiter : waiters_) {
    if (waiter.waiting.erase(pid) == 0) continue;
    waiter.ends.push_back(fmt::format("process {}: {}", pid, how.empty() ? "ended by itself" : how));
    if (waiter.waiting.empty()) done.push_back(std::move(waiter));
  }
  std::erase_if(waiters_, [](const Waiter& waiter) { return waiter.waiting.empty(); });
  for (const Waiter& waiter : done) waiter.done(fmt::format("{}", fmt::join(waiter.ends, "; ")));
}

}  // namespace firebreak::agent
