// SPDX-License-Identifier: Apache-2.0
/// What tenants and the firebreak command ask of the agent, one function a message.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "agent/agent.h"

namespace firebreak::agent {
namespace {

/// So that std::visit takes one lambda a message.
template <class... Each>
struct Overloaded : Each... {
  using Each::operator()...;
};

Status not_in_that_role(const char* what) {
  return fail(ErrorCode::InvalidArgument, fmt::format("{} is not for a process in this role", what));
}

}  // namespace

void Agent::on_message(Connection& connection, abi::Message message, std::vector<os::Fd> descriptors) {
  std::visit(Overloaded{
                 [&](const abi::Join& request) { join(connection, request); },
                 [&](const abi::Publish& request) {
                   answer(connection, publish(connection, request, std::move(descriptors)));
                 },
                 [&](const abi::Ready&) { answer(connection, ready(connection)); },
                 [&](const abi::Resumed& request) { answer(connection, resumed(connection, request)); },
                 [&](const abi::Finish&) { answer(connection, finish(connection)); },
                 [&](const abi::Inject& request) { inject(connection, request); },
                 [&](const abi::Injected& report) { injected(connection, report); },
                 [&](const abi::Place& request) {
                   if (auto placed = place(connection, request)) {
                     connection.send(*placed);
                   } else {
                     answer(connection, propagate(placed));
                   }
                 },
                 [&](const abi::Adopt& request) { answer(connection, adopt_from(connection, request)); },
                 [&](const abi::EndProcess& request) { answer(connection, end_process(request)); },
                 [&](const abi::EndTenant& request) { end_tenant(connection, request); },
                 [&](const abi::Output& output) {
                   detectors_.note_output(static_cast<pid_t>(output.pid), output.text);
                 },
                 [&](const abi::StatusRequest&) { connection.send(abi::Report{status_json()}); },
                 [&](const abi::Subscribe&) {
                   subscribers_.insert(connection.id());
                   answer(connection, {});
                 },
                 [&](const abi::Stop&) {
                   answer(connection, {});
                   loop_.stop();
                 },
                 [&](const auto&) { connection.send(abi::Refused{"that is the agent's to say"}); },
             },
             message);
}

void Agent::answer(Connection& connection, const Status& status) {
  if (status) {
    connection.send(abi::Done{});
    return;
  }
  connection.send(abi::Refused{to_string(status.error())});
}

void Agent::on_closed(Connection& connection) {
  subscribers_.erase(connection.id());
  end_injection(connection.id(), abi::Refused{"the tenant ended first"});
  forget_placements(connection.id());
  std::erase_if(farewells_, [&](const Farewell& each) { return each.connection == connection.id(); });
  for (auto& [name, tenant] : tenants_) {
    // An active without its connection still serves; its end is seen by its pidfd. A standby without one
    // cannot take over.
    for (Member* member : {&tenant->active, &tenant->old_active}) {
      if (member->connection == connection.id()) member->connection = 0;
    }
    if (tenant->standby.connection != connection.id()) continue;
    tenant->standby.connection = 0;
    advance(*tenant, pair::EventType::StandbyExited);
  }
}

/// A process that `firebreak run` has started. One that joins by itself may have done so already.
Status Agent::adopt(const abi::Adopt& request) {
  const auto pid = static_cast<pid_t>(request.pid);
  if (processes_.contains(pid)) return {};
  auto tenant = tenant_named(request.tenant);
  if (!tenant) return propagate(tenant);
  Member& member = request.role == abi::Role::Active ? (*tenant)->active : (*tenant)->standby;
  if (member.pid != 0) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("tenant '{}' already has its {} (process {})", request.tenant,
                            abi::to_string(request.role), member.pid));
  }
  const Placement placement = take_placement(request.tenant, request.role);
  const std::string& domain = placement.domain;
  if (auto followed = follow(pid, request.tenant, domain); !followed) {
    forget_if_empty(request.tenant);
    return followed;
  }
  member = Member{pid, 0, domain, placement.limits};
  domains_.refresh_servers();
  abi::Event event;
  event.what = "adopted";
  event.tenant = request.tenant;
  event.domain = domain;
  event.pid = pid;
  event.text = abi::to_string(request.role);
  tell(std::move(event));
  return {};
}

/// With what the operator says of its strays; a tenant's word about itself does not count.
Status Agent::adopt_from(const Connection& connection, const abi::Adopt& request) {
  if (auto adopted = adopt(request); !adopted) return adopted;
  const auto process = processes_.find(static_cast<pid_t>(request.pid));
  const bool is_itself = connection.peer().pid == request.pid;
  if (process == processes_.end() || is_itself || request.strays == abi::StrayPolicy::Default) return {};
  const auto tenant = tenants_.find(process->second.tenant);
  if (tenant != tenants_.end()) tenant->second->strays = request.strays;
  return {};
}

Status Agent::may_join(const Tenant& tenant, const abi::Join& request) const {
  const bool active = request.role == abi::Role::Active;
  if (tenant.pair.phase == pair::Phase::Finished || tenant.pair.phase == pair::Phase::Lost) {
    return fail(ErrorCode::Unavailable,
                fmt::format("tenant '{}' is {}", request.tenant, pair::to_string(tenant.pair.phase)));
  }
  if (active && tenant.pair.phase != pair::Phase::Empty) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("tenant '{}' already has an active process", request.tenant));
  }
  if (!active && tenant.pair.standby != pair::Standby::None) {
    return fail(ErrorCode::InvalidArgument, fmt::format("tenant '{}' already has a standby", request.tenant));
  }
  if (!active && tenant.old_active.pid != 0) {
    return fail(ErrorCode::Unavailable,
                fmt::format("the fenced process {} of tenant '{}' has not ended yet", tenant.old_active.pid,
                            request.tenant),
                "try again in a moment");
  }
  return {};
}

void Agent::join(Connection& connection, const abi::Join& request) {
  auto tenant = tenant_named(request.tenant);
  if (!tenant) return answer(connection, propagate(tenant));
  if (auto may = may_join(**tenant, request); !may) return answer(connection, may);
  const pid_t pid = connection.peer().pid;
  if (auto adopted = adopt({request.tenant, request.role, pid, {}}); !adopted)
    return answer(connection, adopted);

  const bool active = request.role == abi::Role::Active;
  Member& member = active ? (*tenant)->active : (*tenant)->standby;
  if (member.pid != pid) return answer(connection, not_in_that_role("join"));
  member.connection = connection.id();
  connection.send(abi::Joined{(*tenant)->pair.epoch, Tenant::arena_base}, (*tenant)->page_descriptor());
  if (active) follow_progress(**tenant);
  if (!active) send_allocations(connection, **tenant);
  abi::Event event;
  event.what = "joined";
  event.tenant = request.tenant;
  event.domain = member.domain;
  event.pid = pid;
  event.text = abi::to_string(request.role);
  tell(std::move(event));
  advance(**tenant, active ? pair::EventType::ActiveJoined : pair::EventType::StandbyJoined);
}

void Agent::send_allocations(Connection& connection, const Tenant& tenant) {
  for (const vault::Entry& entry : tenant.vault.entries()) {
    connection.send(abi::Allocation{entry.name, entry.address, entry.size_bytes}, entry.descriptor.get());
  }
}

Status Agent::publish(Connection& connection, const abi::Publish& request, std::vector<os::Fd> descriptors) {
  Tenant* tenant = tenant_of(connection, &Tenant::active);
  if (tenant == nullptr) return not_in_that_role("publish");
  if (auto good = abi::check_name(request.name); !good) return good;
  if (descriptors.size() != 1)
    return fail(ErrorCode::InvalidArgument, "an allocation comes with one descriptor");
  auto added =
      tenant->vault.add({request.name, request.address, request.size_bytes, std::move(descriptors.front())});
  if (!added) return added;
  if (Connection* standby = server_->find(tenant->standby.connection)) {
    standby->send(abi::Allocation{request.name, request.address, request.size_bytes},
                  tenant->vault.entries().back().descriptor.get());
  }
  return {};
}

Status Agent::ready(Connection& connection) {
  Tenant* tenant = tenant_of(connection, &Tenant::standby);
  if (tenant == nullptr) return not_in_that_role("ready");
  domains_.refresh_servers();
  abi::Event event;
  event.what = "ready";
  event.tenant = tenant->name();
  event.domain = tenant->standby.domain;
  event.pid = tenant->standby.pid;
  tell(std::move(event));
  advance(*tenant, pair::EventType::StandbyReady);
  return {};
}

Status Agent::resumed(Connection& connection, const abi::Resumed& request) {
  Tenant* tenant = tenant_of(connection, &Tenant::active);
  if (tenant == nullptr) return not_in_that_role("resumed");
  abi::Event event;
  event.what = "resumed";
  event.step = request.next_step;
  event.at_ns = tenant->page().resumed_at_ns.load(std::memory_order_relaxed);
  event.tenant = tenant->name();
  event.domain = tenant->active.domain;
  event.pid = tenant->active.pid;
  event.epoch = tenant->pair.epoch;
  tell(std::move(event));
  advance(*tenant, pair::EventType::Resumed);
  follow_progress(*tenant);
  return {};
}

Status Agent::finish(Connection& connection) {
  Tenant* tenant = tenant_of(connection, &Tenant::active);
  if (tenant == nullptr) return not_in_that_role("finish");
  abi::Event event;
  event.what = "finished";
  event.tenant = tenant->name();
  event.pid = tenant->active.pid;
  event.epoch = tenant->pair.epoch;
  event.step = tenant->committed(tenant->pair.epoch);
  tell(std::move(event));
  advance(*tenant, pair::EventType::ActiveFinished);
  return {};
}

}  // namespace firebreak::agent
