// SPDX-License-Identifier: Apache-2.0
#include "agent/strays.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace firebreak::agent {

void Strays::on_guard(pid_t pid, const strays::GuardReport& guard) {
  const Process* process = at_.processes.living(pid);
  if (process == nullptr) return;
  abi::Event event;
  event.what = abi::EventKind::Guard;
  event.tenant = process->tenant();
  event.domain = process->domain();
  event.pid = pid;
  event.text = describe(guard);
  if (guard.state == abi::GuardState::Off) {
    spdlog::warn("tenant {} is not guarded: {}", event.tenant, event.text);
  }
  at_.teller.tell(std::move(event));
}

void Strays::on_stray(const strays::Stray& stray) {
  const Process* process = at_.processes.living(stray.pid);
  if (process == nullptr) return;
  Tenant* found = at_.tenants.find(process->tenant());
  if (found == nullptr) return;
  Tenant& tenant = *found;
  // While it ends it may stray on and on: that is no news.
  if (process->is_ending()) return;
  abi::Event event;
  event.at_ns = to_ns(stray.when);
  event.what = abi::EventKind::Stray;
  event.tenant = tenant.name();
  event.domain = process->domain();
  event.pid = stray.pid;
  event.source = to_string(fault::FaultSource::UvmEvent);
  event.text = describe(stray);
  tenant.last_stray = event.text;
  // All that one process strays to is one fault.
  if (stray.blocks == 1) {
    at_.tally.contained(fault::FaultClass::MmuReplayable,
                        {event.at_ns, {}, {}, event.domain, tenant.name(), event.text});
  }
  spdlog::warn("contained stray of tenant {}, process {}: {}", tenant.name(), stray.pid, event.text);
  at_.teller.tell(std::move(event));

  const auto policy = tenant.strays == abi::StrayPolicy::Default ? at_.options.strays : tenant.strays;
  if (policy != abi::StrayPolicy::Report) return end(tenant, stray.pid, "it strayed");
  if (stray.blocks <= at_.options.stray_blocks_max) return;
  end(tenant, stray.pid,
      fmt::format("it strayed into more than {} blocks of 2 MiB", at_.options.stray_blocks_max));
}

/// No choice as with strays: the driver kills it after a while, and a client that dies with a kernel under
/// way needs more luck than one that MPS has taken off the GPU.
void Strays::on_contained(pid_t pid, const std::string& what) {
  const Process* process = at_.processes.living(pid);
  if (process == nullptr || process->is_ending()) return;
  Tenant* found = at_.tenants.find(process->tenant());
  if (found == nullptr) return;
  spdlog::warn("the driver contained a fault of tenant {}, process {}: {}", found->name(), pid, what);
  // What UVM told of it as fatal is not: MPS answers, and an Xid that names a client has no second witness.
  at_.recent_faults.forget(process->domain());
  end(*found, pid, "its fault was " + what);
}

/// The standby runs the same program on the same state, so it would stray as well: it does not take over.
void Strays::end(Tenant& tenant, pid_t pid, const std::string& why) {
  if (tenant.active.pid != pid) return at_.endings.end_orderly(pid, why, at_.options.stray_grace);
  const bool has_standby = tenant.standby.pid != 0;
  at_.endings.end_whole(tenant,
                        has_standby ? why + "; its standby ends too, since it would stray as well" : why,
                        at_.options.stray_grace);
}

}  // namespace firebreak::agent
