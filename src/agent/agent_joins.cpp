// SPDX-License-Identifier: Apache-2.0
/// Who belongs to which tenant, in which role, and what memory it brings along.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "agent/agent.h"

namespace firebreak::agent {

/// A process that `firebreak run` has started. One that joins by itself may have done so already.
Status Agent::adopt(const abi::Adopt& request) {
  const auto pid = static_cast<pid_t>(request.pid);
  if (follower_.is_ours(pid)) return {};
  auto tenant = tenant_named(request.tenant);
  if (!tenant) return propagate(tenant);
  Member& member = (*tenant)->member(request.role);
  if (member.pid != 0) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("tenant '{}' already has its {} (process {})", request.tenant,
                            abi::to_string(request.role), member.pid));
  }
  const Placement placement = placements_.take(request.tenant, request.role);
  const std::string& domain = placement.domain;
  if (auto followed = follower_.follow(pid, request.tenant, domain); !followed) {
    memory_.forget_if_empty(request.tenant);
    return followed;
  }
  member = Member{pid, start_time_of(kernel_, pid), {}, domain, placement.limits};
  (*tenant)->lease.cancel();
  domains_.refresh_servers();
  abi::Event event;
  event.what = abi::EventKind::Adopted;
  event.tenant = request.tenant;
  event.domain = domain;
  event.pid = pid;
  event.text = abi::to_string(request.role);
  teller_.tell(std::move(event));
  return {};
}

/// With what the operator says of its strays; a tenant's word about itself does not count.
Status Agent::adopt_from(const Connection& connection, const abi::Adopt& request) {
  if (auto adopted = adopt(request); !adopted) return adopted;
  const Process* process = processes_.living(static_cast<pid_t>(request.pid));
  const bool is_itself = connection.peer().pid == request.pid;
  if (process == nullptr || is_itself || request.strays == abi::StrayPolicy::Default) return {};
  Tenant* tenant = tenants_.find(process->tenant());
  if (tenant != nullptr) tenant->strays = request.strays;
  return {};
}

Status Agent::may_join(const Tenant& tenant, const abi::Join& request) const {
  const bool active = request.role == abi::Role::Active;
  const pair::Phase phase = tenant.pair.phase;
  if (!credentials_.are(request.tenant, request.token)) {
    return fail(ErrorCode::PermissionDenied,
                fmt::format("that is not the token of tenant '{}'", request.tenant),
                "start the program with `firebreak run`, which passes it on in FIREBREAK_TOKEN");
  }
  if (phase == pair::Phase::Finished || (phase == pair::Phase::Lost && !active)) {
    return fail(ErrorCode::Unavailable,
                fmt::format("tenant '{}' is {}", request.tenant, pair::to_string(phase)));
  }
  if (active && phase != pair::Phase::Empty && phase != pair::Phase::Lost) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("tenant '{}' already has an active process", request.tenant));
  }
  if (!active && tenant.pair.standby != pair::Standby::None) {
    return fail(ErrorCode::InvalidArgument, fmt::format("tenant '{}' already has a standby", request.tenant));
  }
  if (tenant.old_active.pid != 0) {
    return fail(ErrorCode::Unavailable,
                fmt::format("the fenced process {} of tenant '{}' has not ended yet", tenant.old_active.pid,
                            request.tenant),
                "try again in a moment");
  }
  return {};
}

void Agent::join(Connection& connection, const abi::Join& request) {
  auto tenant = tenant_named(request.tenant);
  if (!tenant) return answers_.give(connection, propagate(tenant));
  if (has_joined(connection, **tenant, request)) {
    if (request.role == abi::Role::Standby) stands_by_again(**tenant, false);
    return welcome(connection, **tenant, request.role);
  }
  if (auto may = may_join(**tenant, request); !may) return answers_.give(connection, may);
  if (request.role == abi::Role::Active && deaths_.has_dying(request.tenant)) {
    deaths_.await(connection.asker(), request, connection.peer().pid);
    return;
  }
  const pid_t pid = connection.peer().pid;
  if (auto adopted = adopt({request.tenant, request.role, pid, {}}); !adopted)
    return answers_.give(connection, adopted);

  const bool active = request.role == abi::Role::Active;
  Member& member = (*tenant)->member(request.role);
  if (member.pid != pid) return answers_.give(connection, not_in_that_role("join"));
  member.image = image_of(kernel_, pid);
  if (Process* process = processes_.living(pid)) process->become(ProcessState::Running);
  member.done = 0;  // of a session of before in the same process
  member.attempt = request.attempt;
  member.connection = connection.id();
  if (active) follower_.follow_progress(**tenant);
  if (active && (*tenant)->pair.standby == pair::Standby::None) (*tenant)->unprotected_since = clock_.now();
  tell_joined(**tenant, member, abi::to_string(request.role));
  // First, since an active that begins anew where its tenant was lost begins an epoch.
  pairs_.advance(**tenant, active ? pair::EventType::ActiveJoined : pair::EventType::StandbyJoined);
  welcome(connection, **tenant, request.role);
}

/// The agent before ended, or the connection, before it was answered.
bool Agent::has_joined(const Connection& connection, Tenant& tenant, const abi::Join& request) const {
  const Member& member = tenant.member(request.role);
  return !request.attempt.empty() && member.attempt == request.attempt &&
         member.pid == connection.peer().pid && credentials_.are(request.tenant, request.token);
}

void Agent::welcome(Connection& connection, Tenant& tenant, abi::Role role) {
  Member& member = tenant.member(role);
  member.connection = connection.id();
  records_.save();
  const auto entries = static_cast<std::uint32_t>(tenant.vault.entries().size());
  connection.answer(abi::Joined{tenant.pair.epoch, Tenant::arena_base, entries, records_.returns_ms(),
                                member_number(member)},
                    tenant.page_descriptor());
  memory_.send_allocations(connection, tenant);
}

void Agent::tell_joined(const Tenant& tenant, const Member& member, const std::string& how) {
  abi::Event event;
  event.what = abi::EventKind::Joined;
  event.tenant = tenant.name();
  event.domain = member.domain;
  event.pid = member.pid;
  event.text = how;
  teller_.tell(std::move(event));
}

namespace {

Status no_standby_is_ready(const std::string& tenant) {
  return fail(ErrorCode::Unavailable, fmt::format("tenant '{}' has no standby that is ready", tenant));
}

}  // namespace

/// Asked of the active itself: it knows when it is between two steps.
Status Agent::hand_over(const abi::HandOver& request) {
  const auto active = tenants_.active_of(request.tenant, server_);
  if (!active) return propagate(active);
  if (tenants_.find(request.tenant)->pair.standby != pair::Standby::Ready)
    return no_standby_is_ready(request.tenant);
  (*active)->send(request);
  return {};
}

/// A fenced process that only seemed to have faulted has all that a standby needs; so has one that hands
/// over: but only while its word is not taken back, since it waits no longer for us than for some seconds.
Status Agent::stand_down(Connection& connection, const abi::StandDown& request) {
  const pid_t pid = connection.peer().pid;
  for (auto& [name, tenant] : tenants_.all()) {
    // It takes itself for the active: the answer was lost, or came too late. (Of older programs that is
    // unknown.)
    const bool is_standby = tenant->standby.pid == pid && tenant->standby.connection == connection.id();
    if (is_standby && connection.numbers()) return {};
    if (tenant->active.pid == pid) {
      if (tenant->pair.standby != pair::Standby::Ready) return no_standby_is_ready(name);
      if (request.word != 0 && !tenant->take_hand_over(request.word))
        return fail(ErrorCode::Timeout, fmt::format("tenant '{}' has taken its word back", name));
      pairs_.advance(*tenant, pair::EventType::ActiveStoodDown);
      if (tenant->active.pid == pid) return no_standby_is_ready(name);
    }
    if (tenant->old_active.pid != pid) continue;
    if (tenant->standby.pid != 0) {
      return fail(ErrorCode::InvalidArgument, fmt::format("tenant '{}' already has a standby", name));
    }
    tenant->standby = std::exchange(tenant->old_active, {});
    tenant->standby.connection = connection.id();
    tell_joined(*tenant, tenant->standby, "as a standby, fenced before");
    memory_.send_allocations(connection, *tenant);
    pairs_.advance(*tenant, pair::EventType::StandbyJoined);
    return {};
  }
  return not_in_that_role("stand_down");
}

}  // namespace firebreak::agent
