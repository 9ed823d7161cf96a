// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/descriptor_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ground/os/descriptors.h"

namespace firebreak::agent {
namespace {

/// Descriptors for status, for who joins, and for what an MPS domain needs while it is started again.
constexpr std::uint64_t reserve = 32;
/// Its connection and that of who started it; four pidfds (ours, its exit's, UVM's, the guard's); two event
/// queues of UVM's; duplicates of four descriptors of the GPU's.
constexpr std::uint64_t of_a_process = 12;
/// Its page, its listening socket, and the connection of who keeps the pair.
constexpr std::uint64_t of_a_tenant = 3;
/// Descriptors that are held of a process that is gone.
constexpr std::uint64_t of_the_dead = 6;
constexpr std::uint64_t of_a_pair = of_a_tenant + 2 * of_a_process;

constexpr const char* what_to_do = "end a tenant, or let the agent have more (LimitNOFILE=, ulimit -n)";

}  // namespace

void DescriptorBudget::begin(std::size_t kept) { at_start_ = os::open_descriptors().value_or(kept) - kept; }

std::uint64_t DescriptorBudget::promised() const {
  std::uint64_t promised =
      at_start_ + of_the_dead * at_.processes.dying_count() + at_.weights.descriptors_here();
  std::map<std::string, std::uint64_t> processes;
  for (const Process* each : at_.processes.all_living()) ++processes[each->tenant()];
  for (const auto& [name, tenant] : at_.tenants.all()) {
    promised += of_a_tenant + of_a_process * std::max<std::uint64_t>(processes[name], 2) +
                tenant->vault.descriptors_here() + tenant->clients.open().size();
  }
  return promised + of_a_pair * at_.placements.coming().size();
}

bool DescriptorBudget::is_promised(const std::string& tenant) const {
  return at_.tenants.contains(tenant) || at_.placements.has(tenant);
}

/// Both count: what was promised, and what is really used where somebody is let in, since an estimate may be
/// wrong.
Status DescriptorBudget::room_for(const std::string& whom, std::uint64_t promise,
                                  std::uint64_t at_once) const {
  if (limit_ == 0) return {};
  const std::uint64_t promised_now = promised();
  const std::uint64_t used = at_once == 0 ? 0 : os::open_descriptors().value_or(0);
  if (std::max(promised_now + promise, used + at_once) + reserve <= limit_) return {};
  return fail(
      ErrorCode::ResourceExhausted,
      fmt::format("no room for {}: of the agent's {} descriptors {} are promised, {} used and {} kept in "
                  "reserve",
                  whom, limit_, promised_now, os::open_descriptors().value_or(0), reserve),
      what_to_do);
}

Status DescriptorBudget::room_for_process_of(const std::string& tenant) const {
  return room_for(fmt::format("a process of tenant '{}'", tenant), is_promised(tenant) ? 0 : of_a_pair,
                  of_a_process);
}

Status DescriptorBudget::room_for_allocation(const std::string& name) const {
  return room_for(fmt::format("allocation '{}'", name), 1, 0);
}

Status DescriptorBudget::room_for_client(const std::string& tenant) const {
  return room_for(fmt::format("a client of tenant '{}'", tenant), 1, 0);
}

DescriptorUse DescriptorBudget::use() const {
  return {limit_, os::open_descriptors().value_or(0), promised(), reserve, of_a_pair};
}

}  // namespace firebreak::agent
