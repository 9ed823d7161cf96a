// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/tenant_memory.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "ground/base/units.h"

namespace firebreak::agent {
namespace {

bool is_published(const Tenant& tenant, const abi::Publish& request) {
  return std::ranges::any_of(tenant.vault.entries(), [&](const vault::Entry& entry) {
    return entry.name == request.name && entry.address == request.address &&
           entry.size_bytes == request.size_bytes && entry.memory == request.memory;
  });
}

}  // namespace

void TenantMemory::publish(Connection& connection, const abi::Publish& request,
                           const Descriptors& descriptors) {
  Tenant* tenant = at_.tenants.of(connection, &Tenant::active);
  if (tenant == nullptr) return at_.answers.give_once(connection, not_in_that_role("publish"));
  // The shelves may not have said yet what they have of it: then it is done later, for who asks now.
  if (tenant->put_off([=, this, asker = connection.asker()] {
        at_.server.handle(asker, [&](Connection& then) { publish(then, request, descriptors); });
      }))
    return;
  if (request.memory == abi::Memory::Shared || at_.weights.has(*tenant, request.name))
    return at_.weights.publish(connection, *tenant, request, descriptors);
  // Else the agent before died before it answered.
  if (!is_published(*tenant, request)) {
    if (auto taken = take_in(*tenant, request, std::move(*descriptors)); !taken)
      return at_.answers.give_once(connection, taken);
  }
  const auto entries = tenant->vault.entries();
  put_away(connection.asker(), *tenant, *std::ranges::find(entries, request.name, &vault::Entry::name));
}

Status TenantMemory::take_in(Tenant& tenant, const abi::Publish& request, std::vector<os::Fd> descriptors) {
  if (auto good = abi::check_name(request.name); !good) return good;
  if (descriptors.size() != 1)
    return fail(ErrorCode::InvalidArgument, "an allocation comes with one descriptor");
  if (auto room = at_.budget.room_for_allocation(request.name); !room) return room;
  auto added = tenant.vault.add(
      {request.name, request.address, request.size_bytes, request.memory, std::move(descriptors.front())},
      at_.weights.bytes_of(tenant));
  if (!added) return added;
  if (Connection* standby = at_.server.find(tenant.standby.connection)) {
    standby->send(abi::Allocation{request.name, request.address, request.size_bytes, request.memory},
                  standby->numbers() ? -1 : tenant.vault.entries().back().descriptor.get());
  }
  return {};
}

/// Puts an allocation away, which costs no descriptor of ours from then on; where it cannot be put away it
/// stays. Only then who asked is answered, and relies on it.
void TenantMemory::put_away(const Asker& asker, const Tenant& tenant, const vault::Entry& entry) {
  const auto answer_asker = [this, asker] {
    at_.server.handle(asker, [this](Connection& connection) { at_.answers.give_once(connection, {}); });
  };
  if (entry.is_put_away) return answer_asker();
  const std::string name = memory_name(tenant.name(), entry.name);
  const auto done = [=, this, tenant = tenant.name(), allocation = entry.name](const Status& put) {
    Tenant* found = at_.tenants.find(tenant);
    if (!put) spdlog::error("{} would not outlive the agent: {}", name, to_string(put.error()));
    if (put && found != nullptr) found->vault.put_away(allocation);
    answer_asker();
  };
  at_.shelves.put(name, entry.descriptor.get(), done);
}

void TenantMemory::give_allocation(Connection& connection, const abi::GiveAllocation& request) {
  const Tenant* tenant = at_.tenants.of(connection);
  if (tenant == nullptr) return at_.answers.give(connection, not_in_that_role("give_allocation"));
  const auto entries = tenant->vault.entries();
  const auto entry = std::ranges::find(entries, request.name, &vault::Entry::name);
  if (entry != entries.end())
    return at_.giver.give(connection, *entry, false, memory_name(tenant->name(), entry->name));
  if (!at_.weights.give_own(connection, *tenant, request.name)) connection.answer(abi::Done{});
}

void TenantMemory::send_allocations(Connection& connection, const Tenant& tenant) {
  if (connection.numbers()) return;
  const pid_t pid = connection.peer().pid;
  if (const auto found = sending_.find(pid); found != sending_.end()) {
    found->second.again = connection.id();
    found->second.tenant = tenant.name();
    return;
  }
  for (const vault::Entry& entry : tenant.vault.entries()) {
    const abi::Allocation sent{entry.name, entry.address, entry.size_bytes, entry.memory};
    if (!entry.is_put_away) {
      connection.send(sent, entry.descriptor.get());
      continue;
    }
    ++sending_[pid].left;
    at_.shelves.get(
        {memory_name(tenant.name(), entry.name)},
        [this, sent, pid, id = connection.id(), tenant = tenant.name()](const std::vector<os::Fd>& found) {
          if (!found.front()) spdlog::error("memory '{}' of tenant {} is lost", sent.name, tenant);
          if (Connection* peer = at_.server.find(id)) peer->send(sent, found.front().get());
          sent_to(pid);
        });
  }
}

void TenantMemory::sent_to(pid_t pid) {
  const auto found = sending_.find(pid);
  if (found == sending_.end() || --found->second.left > 0) return;
  const Sending sent = std::move(found->second);
  sending_.erase(found);
  Connection* const connection = at_.server.find(sent.again);
  const Tenant* const tenant = at_.tenants.find(sent.tenant);
  if (connection != nullptr && tenant != nullptr) send_allocations(*connection, *tenant);
}

void TenantMemory::restore(Tenant& tenant, const KeptTenant& kept) {
  std::vector<std::string> names;
  std::vector<std::string> allocations;
  for (const KeptAllocation& each : kept.allocations) {
    const Status added = tenant.vault.add({each.name, each.address, each.size_bytes, each.memory, {}, true});
    if (!added) spdlog::error("memory of tenant {} is lost: {}", kept.name, to_string(added.error()));
    names.push_back(memory_name(kept.name, each.name));
    allocations.push_back(each.name);
  }
  if (names.empty()) return;
  tenant.await_answer();
  at_.shelves.have(std::move(names), [this, name = kept.name, allocations](const std::vector<bool>& there) {
    forget_lost(name, allocations, there);
    if (Tenant* found = at_.tenants.find(name)) found->answered();
  });
}

/// Forgets what was written down, and never came to a shelf, or went with it.
void TenantMemory::forget_lost(const std::string& tenant, const std::vector<std::string>& allocations,
                               const std::vector<bool>& there) {
  Tenant* found = at_.tenants.find(tenant);
  if (found == nullptr) return;
  for (std::size_t i = 0; i < allocations.size(); ++i) {
    if (there[i]) continue;
    spdlog::error("memory '{}' of tenant {} is lost", allocations[i], tenant);
    found->vault.forget(allocations[i]);
    at_.records.forget_text_of(tenant);
  }
  at_.records.save();
}

// --- leases

void TenantMemory::forget_if_empty(std::string name) {
  Tenant* tenant = at_.tenants.find(name);
  if (tenant == nullptr || !tenant->empty()) return;
  at_.weights.has_no_process(*tenant);
  const bool left_something =
      tenant->vault.total_bytes() > 0 || tenant->committed() > 0 || at_.weights.has_unshared(*tenant);
  const bool may_go_on = left_something && tenant->pair.phase == pair::Phase::Lost && !tenant->ended_by_us;
  if (!may_go_on || at_.options.lease == Milliseconds(0)) return forget(*tenant, "its last process is gone");
  tenant->lease = at_.loop.after_or_now(at_.options.lease, [this, name] {
    const Tenant* still = at_.tenants.find(name);
    if (still == nullptr || !still->empty()) return;
    forget(*still, "its lease is over");
    at_.records.save();
  });
}

void TenantMemory::forget_all(const char* why) {
  while (!at_.tenants.all().empty()) forget(*at_.tenants.all().begin()->second, why);
  at_.weights.forget_all(why);
}

void TenantMemory::forget(const Tenant& tenant, const char* why) {
  const std::string name = tenant.name();
  at_.weights.is_no_more(tenant, why);
  abi::Event event;
  event.what = abi::EventKind::MemoryReleased;
  event.tenant = name;
  event.text = fmt::format("{} MiB in {} allocations: {}", tenant.vault.total_bytes() / mib,
                           tenant.vault.entries().size(), why);
  // First what says that there is such a tenant; whoever comes after us clears its shelf then.
  at_.records.leaves(name);
  at_.records.forget(name);
  at_.manager.drop(page_name(name));
  clear_shelf_of(name);
  at_.tenants.erase(name);
  at_.teller.tell(std::move(event));  // its owner hears of it
  // Whoever of it was told to come is still to be known.
  if (!at_.budget.is_promised(name)) at_.credentials.forget(name);
}

/// An agent that was killed before the shelf had heard it left the memory of that tenant there for good.
void TenantMemory::clear_shelf_of(const std::string& tenant) {
  at_.shelves.drop(shelf_folder(tenant), [this, tenant] { at_.records.has_left(tenant); });
}

void TenantMemory::take_up(const std::vector<std::string>& leaving) {
  for (const std::string& tenant : leaving) {
    if (at_.weights.takes_up(tenant)) continue;
    // A new tenant of that name may have something there by now: then all of it goes with that.
    const Tenant* const another = at_.tenants.find(tenant);
    const bool has_something =
        another != nullptr && (!another->vault.entries().empty() || !another->clients.open().empty() ||
                               another->clients.listener() >= 0);
    has_something ? at_.records.has_left(tenant) : clear_shelf_of(tenant);
  }
}

}  // namespace firebreak::agent
