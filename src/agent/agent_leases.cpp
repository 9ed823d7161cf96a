// SPDX-License-Identifier: Apache-2.0
/// What outlives a tenant's processes: its memory, for the time of a lease, and how long it had no standby.
#include <fmt/format.h>

#include "agent/agent.h"
#include "base/units.h"

namespace firebreak::agent {

/// Who was lost may be started anew within the lease, and goes on where it stopped. Who has finished, or
/// never had anything, leaves nothing.
void Agent::forget_if_empty(std::string name) {
  Tenant* found = tenants_.find(name);
  if (found == nullptr || !found->empty()) return;
  Tenant& tenant = *found;
  const bool left_something = tenant.vault.total_bytes() > 0 || tenant.committed() > 0;
  const bool may_go_on = left_something && tenant.pair.phase == pair::Phase::Lost && !tenant.ended_by_us;
  if (!may_go_on || options_.lease == Milliseconds(0)) return forget(name, "its last process is gone");
  tenant.lease = loop_.after_or_now(options_.lease, [this, name] {
    Tenant* still = tenants_.find(name);
    if (still == nullptr || !still->empty()) return;
    forget(name, "its lease is over");
    records_.save();
  });
}

void Agent::forget(std::string name, const char* why) {
  Tenant* found = tenants_.find(name);
  abi::Event event;
  event.what = abi::EventKind::MemoryReleased;
  event.tenant = name;
  event.text = fmt::format("{} MiB in {} allocations: {}", found->vault.total_bytes() / mib,
                           found->vault.entries().size(), why);
  // First what says that there is such a tenant.
  records_.forget(name);
  manager_.drop(page_name(name));
  shelves_.drop(shelf_folder(name));
  tenants_.erase(name);
  credentials_.forget(name);
  teller_.tell(std::move(event));
}

}  // namespace firebreak::agent
