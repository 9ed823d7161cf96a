// SPDX-License-Identifier: Apache-2.0
#include "agent/firebreakd/strays.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace firebreak::agent {
namespace {

std::string words_for(const Process& process) {
  const std::string& tenant = process.tenant_behind();
  if (tenant.empty() && process.stranger)
    return fmt::format("{} of user {}", process.stranger->name, process.stranger->user);
  return "tenant " + tenant;
}

}  // namespace

void Strays::on_guard(pid_t pid, const strays::GuardReport& guard) {
  const Process* process = at_.processes.living(pid);
  if (process == nullptr) return;
  abi::Event event;
  event.what = abi::EventKind::Guard;
  event.tenant = process->tenant_behind();
  event.domain = process->domain();
  event.pid = pid;
  event.text = describe(guard);
  if (guard.state == abi::GuardState::Off) {
    spdlog::warn("{} is not guarded: {}", words_for(*process), event.text);
  }
  at_.teller.tell(std::move(event));
}

/// Takes a stray, also of a client that nobody placed, which has loaded the guard by itself.
void Strays::on_stray(const strays::Stray& stray) {
  const Process* process = at_.processes.living(stray.pid);
  if (process == nullptr) return;
  Tenant* const tenant = at_.tenants.find(process->tenant_behind());
  if (tenant == nullptr && !process->stranger) return;
  // A process that ends may stray on and on: that is no news.
  if (process->is_ending()) return;
  abi::Event event;
  event.at_ns = to_ns(stray.when);
  event.what = abi::EventKind::Stray;
  event.tenant = process->tenant_behind();
  event.domain = process->domain();
  event.pid = stray.pid;
  event.source = to_string(fault::FaultSource::UvmEvent);
  event.text = describe(stray);
  if (tenant != nullptr) tenant->last_stray = event.text;
  // The strays of one process are one fault.
  if (stray.blocks == 1) {
    const std::string culprit = tenant != nullptr ? tenant->name() : fmt::format("process {}", stray.pid);
    at_.tally.contained(fault::FaultClass::MmuReplayable,
                        {event.at_ns, {}, {}, event.domain, culprit, event.text, process->control_group()});
  }
  spdlog::warn("contained stray of {}, process {}: {}", words_for(*process), stray.pid, event.text);
  at_.teller.tell(std::move(event));

  if (policy_for(tenant) != abi::StrayPolicy::Report) return end(tenant, stray.pid, "it strayed");
  if (stray.blocks <= at_.options.stray_blocks_max) return;
  end(tenant, stray.pid,
      fmt::format("it strayed into more than {} blocks of 2 MiB", at_.options.stray_blocks_max));
}

abi::StrayPolicy Strays::policy_for(const Tenant* tenant) const {
  const bool is_its_own = tenant != nullptr && tenant->strays != abi::StrayPolicy::Default;
  return is_its_own ? tenant->strays : at_.options.strays;
}

/// Ends the process; there is no choice as with strays: the driver kills it after a while, and a client that
/// dies with a kernel under way needs more luck than one that MPS has taken off the GPU.
void Strays::on_contained(pid_t pid, const std::string& what) {
  const Process* process = at_.processes.living(pid);
  if (process == nullptr || process->is_ending()) return;
  Tenant* const found = at_.tenants.find(process->tenant_behind());
  if (found == nullptr && !process->stranger) return;
  spdlog::warn("the driver contained a fault of {}, process {}: {}", words_for(*process), pid, what);
  // The fault that UVM told of as fatal is none: MPS answers, and an Xid that names a client has no second
  // witness.
  at_.recent_faults.forget(process->known_domain());
  end(found, pid, "its fault was " + what);
}

/// The standby runs the same program on the same state, so it would stray as well: it does not take over.
void Strays::end(Tenant* tenant, pid_t pid, const std::string& why) {
  const bool is_active = tenant != nullptr && tenant->active.pid == pid;
  if (!is_active) return at_.endings.end_orderly(pid, why, at_.options.stray_grace);
  const bool has_standby = tenant->standby.pid != 0;
  at_.endings.end_whole(*tenant,
                        has_standby ? why + "; its standby ends too, since it would stray as well" : why,
                        at_.options.stray_grace);
}

}  // namespace firebreak::agent
