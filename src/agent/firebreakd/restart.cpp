// SPDX-License-Identifier: Apache-2.0
#include "agent/firebreakd/restart.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>

namespace firebreak::agent {

void Restart::run() {
  descriptors_ = at_.manager.take_descriptors();
  at_.shelves.take_up(descriptors_);
  // Kept descriptors are counted with their tenants.
  at_.budget.begin(descriptors_.size());
  const KeptCommon common = at_.records.take_up_common(descriptors_);
  at_.tally.begin(common.counts);
  at_.gpus.restore(common.gpus);
  at_.warm_standbys.restore_servers(common.servers);
  const std::vector<KeptTenant> kept = at_.records.take_up_tenants(descriptors_);
  std::map<std::string, std::vector<pid_t>> gone;
  for (const KeptTenant& each : kept) gone[each.name] = restore(each);
  at_.weights.restore(at_.records.take_up_weights(descriptors_));
  // Whatever follows writes down what is known, and by now all of them are. Placements hold as long as
  // anybody waits for us.
  at_.placements.restore(common.placements, Milliseconds(at_.records.returns_ms()),
                         [&records = at_.records] { records.save(); });
  // First who has lost its context: nobody is to take over there.
  for (const KeptServer& each : common.servers) {
    if (at_.warm_standbys.has_ended(each)) clients_lost_(each.domain);
  }
  at_.domains.look_for_faults();
  for (const KeptTenant& each : kept) at_.deaths.settle(each, gone[each.name]);
  for (const auto& [name, tenant] : at_.tenants.all()) at_.endings.await_those_of_before(*tenant);
  at_.memory.take_up(common.leaving);
  for (const auto& [name, descriptor] : descriptors_) at_.manager.drop(name);
  at_.shelves.be_kept();
  if (!at_.records.begin()) return at_.shelves.be_kept(false);
  at_.records.save();
}

/// Returns those of its processes that ended while nobody looked.
std::vector<pid_t> Restart::restore(const KeptTenant& kept) {
  auto made = Tenant::restore(kept.name, at_.options.quota_bytes,
                              take_descriptor(descriptors_, page_name(kept.name)));
  if (!made) {
    spdlog::error("tenant {} is lost: {}", kept.name, to_string(made.error()));
    return {};
  }
  at_.pairs.reserve(at_.tenants.all().size() + 1);
  Tenant& tenant = at_.tenants.put(std::move(*made));
  tenant.pair = kept.pair;
  tenant.strays = kept.strays;
  tenant.ended_by_us = kept.ended_by_us;
  at_.credentials.restore(kept.name, kept.token, kept.owner);
  at_.memory.restore(tenant, kept);
  at_.clients.restore(tenant, kept);
  std::vector<pid_t> gone = restore_members(tenant, kept);
  // A promotion that was carried out, and not written down any more.
  if (tenant.standby.pid != 0 && tenant.was_promoted(tenant.standby, kept.pair.epoch + 1)) {
    tenant.take_turns();
    at_.tally.promoted(kept.name, kept.active.domain, Fence::Earlier);
    tenant.pair = {pair::Phase::Promoting, pair::Standby::None, kept.pair.epoch + 1};
  }
  tell_restored(tenant);
  at_.pairs.take_up(tenant);
  return gone;
}

std::vector<pid_t> Restart::restore_members(Tenant& tenant, const KeptTenant& kept) {
  std::vector<pid_t> gone;
  const std::array members = {std::pair(&tenant.active, &kept.active),
                              std::pair(&tenant.standby, &kept.standby),
                              std::pair(&tenant.old_active, &kept.old_active)};
  for (const auto& [member, its] : members) {
    if (its->pid == 0) continue;
    *member = *its;
    const bool is_known = !its->start_time.empty();
    const auto is_still_it = [this, its = its] {
      return may_be_there(at_.kernel, its->pid, its->start_time);
    };
    const auto before = std::ranges::find(kept.processes, its->pid, &KeptProcess::pid);
    const auto where = before == kept.processes.end() ? Whereabouts() : before->where;
    if (!is_known || !at_.follower.follow(its->pid, tenant.name(), its->domain, where, is_still_it)) {
      gone.push_back(its->pid);
    } else if (!its->image.empty()) {  // the process had joined
      at_.processes.living(its->pid)->become(ProcessState::Running);
    }
  }
  if (tenant.active.pid != 0) at_.follower.follow_progress(tenant);
  return gone;
}

void Restart::tell_restored(const Tenant& tenant) {
  abi::Event event;
  event.what = abi::EventKind::Restored;
  event.tenant = tenant.name();
  event.domain = tenant.active.domain;
  event.pid = tenant.active.pid;
  event.epoch = tenant.pair.epoch;
  event.text =
      fmt::format("{}, {} allocations", pair::to_string(tenant.pair.phase), tenant.vault.entries().size());
  at_.teller.tell(std::move(event));
}

}  // namespace firebreak::agent
