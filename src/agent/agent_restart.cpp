// SPDX-License-Identifier: Apache-2.0
/// An agent that is killed, and the next one: what it keeps of every tenant, how that is taken up, and
/// tenants that come back to it. What the shared page says of a promotion goes before what was written down
/// of it: the page is first.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>

#include "agent/agent.h"
#include "os/descriptors.h"
#include "os/processes.h"

namespace firebreak::agent {

namespace {

Status nobody_needs_it(const Tenant& tenant) {
  return fail(ErrorCode::Unavailable, fmt::format("tenant '{}' is {}: nobody needs this standby any more",
                                                  tenant.name(), pair::to_string(tenant.pair.phase)));
}

}  // namespace

void Agent::begin_keeping() {
  std::map<std::string, os::Fd> descriptors = manager_.take_descriptors();
  shelves_.take_up(descriptors);
  // Those that were kept are counted with their tenants.
  budget_.begin(descriptors.size());
  const KeptCommon common = records_.take_up_common(descriptors);
  warm_standbys_.restore_servers(common.servers);
  const std::vector<KeptTenant> kept = records_.take_up_tenants(descriptors);
  std::map<std::string, std::vector<pid_t>> gone;
  for (const KeptTenant& each : kept) gone[each.name] = restore(each, descriptors);
  // Whatever follows writes down what is known, and by now all of them are. First who has lost its context:
  // nobody is to take over there.
  // Placements hold as long as anybody waits for us.
  placements_.restore(common.placements, Milliseconds(records_.returns_ms()), [this] { records_.save(); });
  for (const KeptServer& each : common.servers) {
    if (warm_standbys_.has_ended(each)) on_clients_lost(each.domain);
  }
  domains_.look_for_faults();
  for (const KeptTenant& each : kept) deaths_.settle(each, gone[each.name]);
  for (const auto& [name, descriptor] : descriptors) manager_.drop(name);
  shelves_.be_kept();
  if (!records_.begin()) return shelves_.be_kept(false);
  records_.save();
}

/// Returns those of its processes that ended while nobody looked.
std::vector<pid_t> Agent::restore(const KeptTenant& kept, std::map<std::string, os::Fd>& descriptors) {
  auto made =
      Tenant::restore(kept.name, options_.quota_bytes, take_descriptor(descriptors, page_name(kept.name)));
  if (!made) {
    spdlog::error("tenant {} is lost: {}", kept.name, to_string(made.error()));
    return {};
  }
  pairs_.reserve(tenants_.all().size() + 1);
  Tenant& tenant = tenants_.put(std::move(*made));
  tenant.pair = kept.pair;
  tenant.strays = kept.strays;
  tenant.ended_by_us = kept.ended_by_us;
  credentials_.restore(kept.name, kept.token);
  memory_.restore(tenant, kept);
  clients_.restore(tenant, kept);
  std::vector<pid_t> gone = restore_members(tenant, kept);
  // A promotion that was carried out, and not written down any more.
  if (tenant.standby.pid != 0 && tenant.was_promoted(tenant.standby, kept.pair.epoch + 1)) {
    tenant.take_turns();
    tenant.pair = {pair::Phase::Promoting, pair::Standby::None, kept.pair.epoch + 1};
  }
  tell_restored(tenant);
  pairs_.take_up(tenant);
  return gone;
}

std::vector<pid_t> Agent::restore_members(Tenant& tenant, const KeptTenant& kept) {
  std::vector<pid_t> gone;
  const std::array members = {std::pair(&tenant.active, &kept.active),
                              std::pair(&tenant.standby, &kept.standby),
                              std::pair(&tenant.old_active, &kept.old_active)};
  for (const auto& [member, its] : members) {
    if (its->pid == 0) continue;
    *member = *its;
    const bool lives = start_time_of(kernel_, its->pid) == its->start_time;
    if (!lives || !follower_.follow(its->pid, tenant.name(), its->domain)) {
      gone.push_back(its->pid);
    } else if (!its->image.empty()) {  // it had joined
      processes_.living(its->pid)->become(ProcessState::Running);
    }
  }
  if (tenant.active.pid != 0) follower_.follow_progress(tenant);
  return gone;
}

void Agent::tell_restored(const Tenant& tenant) {
  abi::Event event;
  event.what = abi::EventKind::Restored;
  event.tenant = tenant.name();
  event.domain = tenant.active.domain;
  event.pid = tenant.active.pid;
  event.epoch = tenant.pair.epoch;
  event.text =
      fmt::format("{}, {} allocations", pair::to_string(tenant.pair.phase), tenant.vault.entries().size());
  teller_.tell(std::move(event));
}

/// A process that had joined, and lost the agent before this one, or its connection to this one. What the
/// pair was told when that broke it is told anew. A connection that is still there is the process's older
/// one.
Status Agent::rejoin(Connection& connection, const abi::Rejoin& request) {
  Tenant* found = tenants_.find(request.tenant);
  if (found == nullptr || !credentials_.are(request.tenant, request.token)) {
    return fail(ErrorCode::NotFound, fmt::format("nobody knows tenant '{}' here", request.tenant));
  }
  Tenant& tenant = *found;
  for (Member* member : {&tenant.active, &tenant.standby, &tenant.old_active}) {
    if (member->pid != connection.peer().pid) continue;
    const bool is_standby = member == &tenant.standby;
    if (is_standby && tenant.pair.phase == pair::Phase::Lost) return nobody_needs_it(tenant);
    member->connection = connection.id();
    memory_.send_allocations(connection, tenant);
    if (is_standby) stands_by_again(tenant, request.ready);
    return {};
  }
  return fail(ErrorCode::NotFound,
              fmt::format("process {} is none of tenant '{}'", connection.peer().pid, request.tenant));
}

void Agent::stands_by_again(Tenant& tenant, bool ready) {
  if (tenant.pair.standby == pair::Standby::None) {
    tell_joined(tenant, tenant.standby, "as a standby, which had lost its connection");
    pairs_.advance(tenant, pair::EventType::StandbyJoined);
  }
  if (ready && tenant.pair.standby == pair::Standby::Joined) warm_standbys_.warmed_up(tenant, std::nullopt);
}

}  // namespace firebreak::agent
