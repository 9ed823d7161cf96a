// SPDX-License-Identifier: Apache-2.0
#include "agent/endings/deaths.h"

#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>
#include <utility>

#include "shared/guard_page/work_view.h"

namespace firebreak::agent {
namespace {

/// ", still running kernel `scale`"; empty: not known.
std::string running_kernels(const abi::GuardWork& work) {
  const std::string kernels = guard::describe_kernels(kernels_in_flight(work, guard::Since::Now));
  return kernels.empty() ? "" : ", still running " + kernels;
}

/// Returns the traces that the agent before knew of that process on the GPU.
hold::Traces traces_in(const KeptTenant& kept, const Member& member) {
  const auto its = std::ranges::find(kept.processes, member.pid, &KeptProcess::pid);
  const bool is_known = its != kept.processes.end() && !its->traces.empty();
  return is_known ? its->traces : hold::Traces{member.image, {}, {}};
}

std::set<std::string> known_domains_of(const KeptTenant& kept, pid_t pid) {
  const auto its = std::ranges::find(kept.processes, pid, &KeptProcess::pid);
  return its == kept.processes.end() ? std::set<std::string>() : its->where.known;
}

}  // namespace

void Deaths::on_exit(pid_t pid) {
  if (at_.processes.living(pid) == nullptr) return;
  if (at_.holder.keep(pid)) {
    Process& dying = at_.processes.die(pid);
    tell_exited(dying);
    return await_last_kernel(dying);
  }
  const auto process = at_.processes.take_living(pid);
  Tenant* its = at_.tenants.find(process->tenant());
  const bool is_known = its != nullptr || process->stranger;
  const bool endangers = is_known && !is_harmless(*process);
  const std::string domain = process->known_domain();
  at_.pairs.exited(its, pid, endangers ? domain : std::string(), [&] { tell_exited(*process); });
  if (its != nullptr) at_.memory.forget_if_empty(process->tenant());
  at_.records.save();
  at_.endings.tell_ended(pid, process->steps());
  if (is_known && others_in(domain).empty()) let_go_of(domain);
}

void Deaths::tell_exited(const Process& process) {
  abi::Event event;
  event.what = abi::EventKind::Exited;
  event.tenant = process.tenant();
  event.domain = process.domain();
  event.pid = process.pid();
  event.text = process.steps();
  at_.teller.tell(std::move(event));
}

void Deaths::leave(Tenant& tenant, pid_t pid) {
  const std::string name = tenant.name();
  at_.pairs.exited(&tenant, pid, {});
  at_.memory.forget_if_empty(name);
  at_.records.save();
}

/// A lease that had begun begins once more: nobody knows how long the agent was away.
void Deaths::settle(const KeptTenant& kept, const std::vector<pid_t>& gone) {
  for (const pid_t pid : gone) {
    Tenant* tenant = at_.tenants.find(kept.name);
    if (tenant == nullptr) break;
    const Member& active = tenant->active;
    if (active.pid == pid && at_.holder.keep(pid, traces_in(kept, active))) {
      await_last_kernel(at_.processes.add_dead(pid, kept.name, active.domain, known_domains_of(kept, pid)));
    } else {
      leave(*tenant, pid);
    }
  }
  for (const KeptProcess& each : kept.processes) {
    if (!each.has_left || !at_.tenants.contains(kept.name)) continue;
    if (at_.holder.keep(each.pid, each.traces))
      await_last_kernel(at_.processes.add_dead(each.pid, kept.name, each.domain, each.where.known));
  }
  for (const Member* each : {&kept.active, &kept.standby, &kept.old_active})
    settle_other_program(kept, *each);
  at_.memory.forget_if_empty(kept.name);
}

/// The process lives, and its work has ended with the program that it was.
void Deaths::settle_other_program(const KeptTenant& kept, const Member& member) {
  if (at_.processes.living(member.pid) == nullptr || !at_.endings.is_other_program(member)) return;
  at_.holder.keep_of_program_before(member.pid, traces_in(kept, member));
  at_.endings.on_other_program(member.pid);
}

/// A standby takes over when nothing of the old active can land any more, and its last kernel still may.
bool Deaths::is_waited_for(const Tenant& tenant, pid_t pid) const {
  return tenant.active.pid == pid && tenant.pair.standby != pair::Standby::None;
}

/// True when it has nothing on the GPU any more: MPS took it off, or it has finished and said so.
bool Deaths::is_harmless(const Process& process) const {
  if (process.was_taken_off()) return true;
  Tenant* tenant = at_.tenants.find(process.tenant());
  return tenant != nullptr && tenant->pair.phase == pair::Phase::Finished && !tenant->ended_by_us;
}

void Deaths::await_last_kernel(Process& process) {
  const pid_t pid = process.pid();
  Tenant* tenant = at_.tenants.find(process.tenant());
  const bool waits = tenant != nullptr && is_waited_for(*tenant, pid);
  const std::string domain = process.known_domain();
  const bool harmless = is_harmless(process);
  process.remainder.has_left = !waits;
  process.remainder.guard = at_.detectors.guard_of(pid);
  process.remainder.harmless = harmless;
  if (waits) {
    at_.pairs.advance(*tenant, pair::EventType::DangerSeen);  // the tenant serves no more
  } else if (tenant != nullptr) {
    leave(*tenant, pid);
  }
  // Nothing is left to wait for, or nobody to be harmed.
  if (harmless || has_lost_its_clients(domain) || others_in(domain).empty()) return at_.holder.let_go(pid);
  tell_of_running_work(process);
  // Its own standby cannot wait for a kernel whose end nobody sees, and not long for one whose end is seen.
  if (waits) at_.holder.let_go(pid, at_.options.fence_wait);
}

/// The work is the process's own word: one that lies harms nobody whom it could not harm anyway.
hold::ReadWork Deaths::watch_work(pid_t pid) const {
  auto guard = at_.detectors.guard_of(pid);
  if (!guard) return nullptr;
  return [guard = std::move(guard)] {
    switch (guard::state_of(guard->work())) {
      case guard::LaunchState::Ended:
        return hold::WorkState::Ended;
      case guard::LaunchState::Running:
        return hold::WorkState::Running;
      case guard::LaunchState::Unknown:
        break;
    }
    return hold::WorkState::Unknown;
  };
}

void Deaths::tell_of_running_work(const Process& process) {
  const auto& guard = process.remainder.guard;
  if (!guard || guard::state_of(guard->work()) != guard::LaunchState::Running) return;
  abi::Event event;
  event.what = abi::EventKind::Held;
  event.tenant = process.tenant();
  event.domain = process.domain();
  event.pid = process.pid();
  event.text = "its work is known to be under way" + running_kernels(guard->work());
  at_.teller.tell(std::move(event));
}

std::vector<Tenant*> Deaths::others_in(const std::string& domain) const {
  std::vector<Tenant*> others;
  for (auto& [name, tenant] : at_.tenants.all()) {
    const Process* const active = at_.processes.living(tenant->active.pid);
    const bool is_there = active != nullptr && active->may_be_in(domain);
    if (is_there && tenant->active.domain == domain) others.push_back(tenant.get());
  }
  return others;
}

/// Whoever has a standby elsewhere is moved there while there is time.
void Deaths::on_endless(pid_t pid) {
  const Process* dying = at_.processes.dying(pid);
  if (dying == nullptr) return;
  const Process& process = *dying;
  const std::vector<Tenant*> others = others_in(process.known_domain());
  abi::Event event;
  event.what = abi::EventKind::Endless;
  event.tenant = process.tenant();
  event.domain = process.domain();
  event.pid = pid;
  const auto& guard = process.remainder.guard;
  event.text = fmt::format(
      "its work runs on after its end{}; {} tenants in its domain, held for at most {} ms",
      guard ? running_kernels(guard->work()) : "", others.size(), at_.options.longest_hold.count());
  spdlog::warn("process {} of {}: {}", pid, process.tenant(), event.text);
  at_.teller.tell(std::move(event));
  for (const Tenant* other : others) {
    if (other->pair.standby == pair::Standby::Ready) {
      at_.endings.end_orderly(other->active.pid, "its domain is about to fail", at_.options.end_grace);
    }
  }
  if (others.empty()) at_.holder.let_go(pid);
}

void Deaths::on_released(const hold::Release& release) {
  const auto process = at_.processes.take_dying(release.pid);
  if (process == nullptr) return;  // the process gave the GPU back, and lives
  Tenant* tenant = process->remainder.has_left ? nullptr : at_.tenants.find(process->tenant());
  const bool endangers = !is_safe(release.work) && !process->remainder.harmless;
  const std::string domain = process->known_domain();
  at_.pairs.exited(tenant, release.pid, endangers ? domain : std::string(),
                   [&] { tell_released(release, *process); });
  if (tenant != nullptr) at_.memory.forget_if_empty(process->tenant());
  at_.records.save();
  let_join(process->tenant());
  at_.endings.tell_ended(release.pid, process->steps());
  if (others_in(domain).empty()) let_go_of(domain);
}

void Deaths::tell_released(const hold::Release& release, const Process& process) {
  abi::Event event;
  event.what = abi::EventKind::Released;
  event.tenant = process.tenant();
  event.domain = process.domain();
  event.pid = release.pid;
  event.text = describe(release);
  if (release.work == hold::WorkEnd::Forced) {
    spdlog::warn("process {} of {}: {}", event.pid, event.tenant, event.text);
  }
  verify_release(event);
  at_.teller.tell(std::move(event));
  if (process.remainder.others.empty()) return;
  abi::Event fenced;
  fenced.what = abi::EventKind::Fenced;
  fenced.tenant = process.tenant();
  fenced.domain = process.domain();
  fenced.pid = release.pid;
  fenced.text = fmt::format("nobody keeps its GPU descriptors any more, {} ms after its end",
                            std::chrono::duration_cast<Milliseconds>(release.held).count());
  at_.teller.tell(std::move(fenced));
}

// --- others who keep its address space
// ---------------------------------------------------------------------------------

/// Its standby, or who begins anew after it.
bool Deaths::somebody_waits_for(const Process& process) const {
  return !process.remainder.has_left || std::ranges::any_of(waiting_joins_, [&](const WaitingJoin& each) {
    return each.request.tenant == process.tenant();
  });
}

/// Of one that had nothing on the GPU any more nothing is left to be fenced, nor of one whose work has ended
/// by its guard's word, where nobody follows it.
bool Deaths::is_to_be_fenced(const Process& process) const {
  const Remainder& left = process.remainder;
  const bool has_ended = left.guard && guard::state_of(left.guard->work()) == guard::LaunchState::Ended;
  return !left.harmless && !(has_ended && !somebody_waits_for(process));
}

/// Others keep its kernels alive: as long as they do, its end is no fence.
void Deaths::on_others(pid_t pid, const hold::Findings& others) {
  Process* process = at_.processes.dying(pid);
  if (process == nullptr) return;  // the process gave the GPU back, and lives
  const std::string text = describe(others);
  const bool is_news = !others.settling && is_to_be_fenced(*process) && process->remainder.others != text;
  if (is_news) tell_of_others(*process, text);
  on_traces(pid);
  if (somebody_waits_for(*process)) end_forks(*process, others.seen);
}

/// The next agent has no duplicates of what it had, and is told by us who has them.
void Deaths::on_traces(pid_t pid) {
  Tenant* tenant = at_.tenants.find(at_.processes.tenant_of(pid));
  if (tenant != nullptr) at_.records.save(*tenant);
}

void Deaths::tell_of_others(Process& process, const std::string& others) {
  process.remainder.others = others;
  abi::Event event;
  event.what = abi::EventKind::NotFenced;
  event.tenant = process.tenant();
  event.domain = process.domain();
  event.pid = process.pid();
  event.text =
      fmt::format("{} still holds the GPU descriptors of the dead {}: nobody follows it before that ends",
                  others, process.remainder.has_left ? "process" : "active");
  spdlog::warn("process {} of {}: {}", event.pid, event.tenant, event.text);
  at_.teller.tell(std::move(event));
}

/// Forks are the dead tenant's own, as the workers of a data loader: nothing is left of them but what they
/// keep. Processes of somebody else are waited for.
void Deaths::end_forks(Process& process, const std::vector<hold::OtherHolder>& holders) {
  for (const hold::OtherHolder& holder : holders) {
    const bool joins =
        std::ranges::any_of(waiting_joins_, [&](const WaitingJoin& each) { return each.pid == holder.pid; });
    if (!holder.is_fork || at_.processes.living(holder.pid) != nullptr || joins) continue;
    // The process that was looked at: the number may be another's by now.
    const auto fork = at_.kernel.pidfd_open(holder.pid);
    if (!fork || start_time_of(at_.kernel, holder.pid) != holder.start_time) continue;
    if (!process.remainder.ended.insert(holder.pid).second) continue;
    spdlog::info("ending process {} ({}) of {}: it is left of a dead process, and keeps its GPU descriptors",
                 holder.pid, holder.name, process.tenant());
    if (const Status sent = at_.kernel.send_signal(*fork, SIGKILL); !sent)
      spdlog::warn("process {} could not be ended: {}", holder.pid, to_string(sent.error()));
  }
}

bool Deaths::has_dying(const std::string& tenant) const {
  return std::ranges::any_of(at_.processes.all_dying(),
                             [&](const Process* each) { return each->tenant() == tenant; });
}

void Deaths::await(const Asker& asker, const abi::Join& request, pid_t pid) {
  waiting_joins_.push_back({asker, request, pid});
}

void Deaths::on_closed(const Connection& connection) {
  std::set<std::string> tenants;
  std::erase_if(waiting_joins_, [&](const WaitingJoin& each) {
    if (each.asker.connection != connection.id()) return false;
    tenants.insert(each.request.tenant);
    return true;
  });
  for (const std::string& tenant : tenants) forget_if_nobody_came(tenant);
}

/// The tenant may have been made for a process that waited, and has gone or been refused: no end of a process
/// would end it.
void Deaths::forget_if_nobody_came(const std::string& tenant) {
  const Tenant* const its = at_.tenants.find(tenant);
  const bool is_waited_for = std::ranges::any_of(
      waiting_joins_, [&](const WaitingJoin& each) { return each.request.tenant == tenant; });
  if (its == nullptr || its->pair.phase != pair::Phase::Empty || is_waited_for) return;
  at_.memory.forget_if_empty(tenant);
}

/// Lets those join who begin anew after it.
void Deaths::let_join(const std::string& tenant) {
  if (has_dying(tenant)) return;
  std::vector<WaitingJoin> those;
  std::erase_if(waiting_joins_, [&](const WaitingJoin& each) {
    if (each.request.tenant != tenant) return false;
    those.push_back(each);
    return true;
  });
  for (const WaitingJoin& each : those) join_(each.asker, each.request);
  forget_if_nobody_came(tenant);
}

/// Verifies that nothing was left.
void Deaths::verify_release(abi::Event released) {
  const auto pid = static_cast<pid_t>(released.pid);
  at_.detectors.look_for_remains(pid, [this, told = std::move(released)](const std::string& text) {
    abi::Event event = told;
    event.what = abi::EventKind::Remains;
    event.at_ns = 0;
    event.text = text;
    at_.teller.tell(std::move(event));
  });
}

/// True when the domain had a fault and takes nobody yet, or its server has ended: nothing runs there any
/// more that could harm.
bool Deaths::has_lost_its_clients(const std::string& domain) const {
  const auto reports = at_.domains.reports();
  const auto found = std::ranges::find(reports, domain, &mps::DomainReport::name);
  return found != reports.end() && found->state != mps::DomainState::Serving;
}

void Deaths::let_go_of(const std::string& domain) {
  for (const Process* each : at_.processes.all_dying()) {
    if (each->known_domain() == domain) at_.holder.let_go(each->pid());
  }
}

}  // namespace firebreak::agent
