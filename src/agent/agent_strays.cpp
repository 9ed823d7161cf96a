// SPDX-License-Identifier: Apache-2.0
/// What becomes of a tenant whose stray or fault was contained: it computes nonsense, and its neighbours are
/// not harmed.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "agent/agent.h"

namespace firebreak::agent {

void Agent::on_guard(pid_t pid, const strays::GuardReport& guard) {
  const Process* process = processes_.living(pid);
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
  teller_.tell(std::move(event));
}

void Agent::on_stray(const strays::Stray& stray) {
  const Process* process = processes_.living(stray.pid);
  if (process == nullptr) return;
  Tenant* found = tenants_.find(process->tenant());
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
  spdlog::warn("contained stray of tenant {}, process {}: {}", tenant.name(), stray.pid, event.text);
  teller_.tell(std::move(event));

  const auto policy = tenant.strays == abi::StrayPolicy::Default ? options_.strays : tenant.strays;
  if (policy != abi::StrayPolicy::Report) return end_strayed(tenant, stray.pid, "it strayed");
  if (stray.blocks <= options_.stray_blocks_max) return;
  end_strayed(tenant, stray.pid,
              fmt::format("it strayed into more than {} blocks of 2 MiB", options_.stray_blocks_max));
}

/// No choice as with strays: the driver kills it after a while, and a client that dies with a kernel under
/// way needs more luck than one that MPS has taken off the GPU.
void Agent::on_contained(pid_t pid, const std::string& what) {
  const Process* process = processes_.living(pid);
  if (process == nullptr || process->is_ending()) return;
  Tenant* found = tenants_.find(process->tenant());
  if (found == nullptr) return;
  spdlog::warn("the driver contained a fault of tenant {}, process {}: {}", found->name(), pid, what);
  // What UVM told of it as fatal is not: MPS answers, and an Xid that names a client has no second witness.
  recent_faults_.forget(process->domain());
  end_strayed(*found, pid, "its fault was " + what);
}

/// The standby runs the same program on the same state, so it would stray as well: it does not take over.
void Agent::end_strayed(Tenant& tenant, pid_t pid, const std::string& why) {
  if (tenant.active.pid != pid) return end_orderly(pid, why, options_.stray_grace);
  const bool has_standby = tenant.standby.pid != 0;
  end_whole(tenant, has_standby ? why + "; its standby ends too, since it would stray as well" : why,
            options_.stray_grace);
}

}  // namespace firebreak::agent
