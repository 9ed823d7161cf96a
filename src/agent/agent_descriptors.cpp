// SPDX-License-Identifier: Apache-2.0
/// How many descriptors the agent may have, who is promised how many, and who gets none any more: a tenant
/// that is let in has room for both of its processes, whenever they come.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "agent/agent.h"
#include "os/descriptors.h"

namespace firebreak::agent {
namespace {

/// For status, for who joins, and for what an MPS domain needs while it is started again.
constexpr std::uint64_t reserve = 32;
/// Its connection and that of who started it; five pidfds (ours, its exit's, UVM's, the guard's, the
/// holder's); two event queues of UVM's; duplicates of four descriptors of the GPU's.
constexpr std::uint64_t of_a_process = 13;
/// Its page, its listening socket, and the connection of who keeps the pair.
constexpr std::uint64_t of_a_tenant = 3;
/// What is held of one that is gone.
constexpr std::uint64_t of_the_dead = 6;
constexpr std::uint64_t of_a_pair = of_a_tenant + 2 * of_a_process;

constexpr const char* what_to_do = "end a tenant, or let the agent have more (LimitNOFILE=, ulimit -n)";

}  // namespace

std::uint64_t Agent::promised_descriptors() const {
  std::uint64_t promised = descriptors_at_start_ + of_the_dead * processes_.dying_count();
  std::map<std::string, std::uint64_t> processes;
  for (const Process* each : processes_.all_living()) ++processes[each->tenant()];
  for (const auto& [name, tenant] : tenants_.all()) {
    promised += of_a_tenant + of_a_process * std::max<std::uint64_t>(processes[name], 2) +
                tenant->vault.descriptors_here() + tenant->clients.open().size();
  }
  std::set<std::string> coming;
  for (const Placement& each : placements_) {
    if (!tenants_.contains(each.tenant)) coming.insert(each.tenant);
  }
  return promised + of_a_pair * coming.size();
}

bool Agent::is_promised(const std::string& tenant) const {
  return tenants_.contains(tenant) || std::ranges::count(placements_, tenant, &Placement::tenant) > 0;
}

/// What was promised, and what is really used where somebody is let in: an estimate may be wrong.
Status Agent::room_for(const std::string& whom, std::uint64_t promise, std::uint64_t at_once) const {
  if (options_.descriptors_max == 0) return {};
  const std::uint64_t promised = promised_descriptors();
  const std::uint64_t used = at_once == 0 ? 0 : os::open_descriptors().value_or(0);
  if (std::max(promised + promise, used + at_once) + reserve <= options_.descriptors_max) return {};
  return fail(
      ErrorCode::ResourceExhausted,
      fmt::format("no room for {}: of the agent's {} descriptors {} are promised, {} used and {} kept in "
                  "reserve",
                  whom, options_.descriptors_max, promised, os::open_descriptors().value_or(0), reserve),
      what_to_do);
}

Status Agent::room_for_process_of(const std::string& tenant) const {
  return room_for(fmt::format("a process of tenant '{}'", tenant), is_promised(tenant) ? 0 : of_a_pair,
                  of_a_process);
}

Status Agent::room_for_allocation(const std::string& name) const {
  return room_for(fmt::format("allocation '{}'", name), 1, 0);
}

/// In words, with the process.
std::vector<std::string> Agent::lacks_of(const Tenant& tenant) const {
  std::vector<std::string> all;
  for (const Member* member : {&tenant.active, &tenant.standby}) {
    if (member->pid == 0) continue;
    std::vector<std::string> its = detectors_.lacks_of(member->pid);
    if (holder_.lacks(member->pid)) its.emplace_back("not all of it is held");
    for (const std::string& each : its) all.push_back(fmt::format("process {}: {}", member->pid, each));
  }
  return all;
}

Agent::DescriptorUse Agent::descriptor_use() const {
  return {options_.descriptors_max, os::open_descriptors().value_or(0), promised_descriptors(), reserve,
          of_a_pair};
}

}  // namespace firebreak::agent
