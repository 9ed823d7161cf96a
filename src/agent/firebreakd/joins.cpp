// SPDX-License-Identifier: Apache-2.0
#include "agent/firebreakd/joins.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "ground/os/processes.h"

namespace firebreak::agent {
namespace {

Status no_standby_is_ready(const std::string& tenant) {
  return fail(ErrorCode::Unavailable, fmt::format("tenant '{}' has no standby that is ready", tenant));
}

Status nobody_needs_it(const Tenant& tenant) {
  return fail(ErrorCode::Unavailable, fmt::format("tenant '{}' is {}: nobody needs this standby any more",
                                                  tenant.name(), pair::to_string(tenant.pair.phase)));
}

}  // namespace

/// Made where it is new, for that user.
Result<Tenant*> Joins::tenant_named(const std::string& name, uid_t user) {
  if (Tenant* found = at_.tenants.find(name)) return found;
  if (!at_.budget.is_promised(name)) {
    if (auto room = at_.budget.room_for_process_of(name); !room) return propagate(room);
  }
  if (auto room = at_.records.room_for_tenant(name); !room) return propagate(room);
  auto created = Tenant::create(name, at_.options.quota_bytes);
  if (!created) return propagate(created);
  at_.credentials.claim(name, user);
  at_.records.keep(page_name(name), (*created)->page_descriptor());
  at_.pairs.reserve(at_.tenants.all().size() + 1);
  return &at_.tenants.put(std::move(*created));
}

/// One that joins by itself may have done so already.
Status Joins::take_on(const Connection& connection, const abi::Adopt& request,
                      const std::string& pipe_directory) {
  const auto pid = static_cast<pid_t>(request.pid);
  if (at_.follower.is_ours(pid)) return {};
  auto tenant = tenant_named(request.tenant, connection.peer().uid);
  if (!tenant) return propagate(tenant);
  Member& member = (*tenant)->member(request.role);
  if (member.pid != 0) {
    return fail(ErrorCode::InvalidArgument,
                fmt::format("tenant '{}' already has its {} (process {})", request.tenant,
                            abi::to_string(request.role), member.pid));
  }
  const Placement placement = at_.placements.take(request.tenant, request.role, pipe_directory);
  const std::string& domain = placement.domain;
  std::string start_time = start_time_of(at_.kernel, pid);  // first: later it may hide itself
  const auto is_still_it = [&] {
    return is_for(connection, pid) && (start_time.empty() || may_be_there(at_.kernel, pid, start_time));
  };
  if (auto followed =
          at_.follower.follow(pid, request.tenant, domain, {.expected = placement.expected_in}, is_still_it);
      !followed) {
    at_.memory.forget_if_empty(request.tenant);
    at_.follower.remove_pipes(placement.pipes);
    return followed;
  }
  if (!placement.pipes.empty()) at_.follower.give_pipes(pid, placement.pipes);
  member = Member{pid, std::move(start_time), {}, domain, placement.limits};
  (*tenant)->lease.cancel();
  at_.domains.refresh_servers();
  abi::Event event;
  event.what = abi::EventKind::Adopted;
  event.tenant = request.tenant;
  event.domain = domain;
  event.pid = pid;
  event.text = abi::to_string(request.role);
  at_.teller.tell(std::move(event));
  return {};
}

/// A tenants' connection brings what it was told to start, its own child and its own user's: not any process
/// whose number it knows.
Status Joins::may_adopt(const Connection& connection, const abi::Adopt& request) const {
  const os::PeerCredentials& peer = connection.peer();
  if (connection.asking().entrance == Entrance::Operators || peer.pid == request.pid) return {};
  const auto pid = static_cast<pid_t>(request.pid);
  const bool is_again = at_.follower.is_ours(pid) && at_.processes.living(pid)->tenant() == request.tenant;
  if (!is_again && !at_.placements.was_told(connection.id(), request.tenant, request.role))
    return fail(ErrorCode::PermissionDenied, "nobody told this connection to start that process");
  return is_for(connection, pid);
}

/// Checks whether a process with that number is for this connection to bring: the one that opened it, or for
/// a tenants' connection a child of that with its user, or for an operator any.
Status Joins::is_for(const Connection& connection, pid_t pid) const {
  const os::PeerCredentials& peer = connection.peer();
  if (peer.pid == pid && connection.has_its_peer(at_.kernel)) return {};
  if (peer.pid != pid && connection.asking().entrance == Entrance::Operators) return {};
  const auto status = at_.kernel.read_file(os::proc_folder(pid) + "/status");
  const bool is_child = os::parent_of(at_.kernel, pid) == peer.pid;
  if (is_child && status && os::is_of_user_alone(*status, peer.uid)) return {};
  return fail(ErrorCode::PermissionDenied,
              fmt::format("process {} is no child of process {} with its user", pid, peer.pid));
}

Status Joins::adopt(Connection& connection, const abi::Adopt& request) {
  if (auto may = may_adopt(connection, request); !may) return may;
  const auto pid = static_cast<pid_t>(request.pid);
  // Who becomes the program says how it is to be treated, before that. The program itself does not.
  const bool is_itself = connection.peer().pid == pid;
  const bool may_say = !is_itself || (!at_.follower.is_ours(pid) &&
                                      at_.placements.was_told(connection.id(), request.tenant, request.role));
  if (auto adopted = take_on(connection, request); !adopted) return adopted;
  connection.has_adopted(pid, start_time_of(at_.kernel, pid));
  Process* process = at_.processes.living(pid);
  if (process != nullptr) process->adopter = connection.id();
  if (process == nullptr || !may_say || request.strays == abi::StrayPolicy::Default) return {};
  Tenant* tenant = at_.tenants.find(process->tenant());
  if (tenant != nullptr) tenant->strays = request.strays;
  return {};
}

/// Its token says so; where it has none, its user.
Status Joins::may_be(const Connection& connection, const std::string& tenant,
                     const std::string& token) const {
  if (at_.credentials.admit(tenant, token, connection.asking())) return {};
  return fail(ErrorCode::PermissionDenied, fmt::format("that is not the token of tenant '{}'", tenant),
              "start the program with `firebreak run`, which passes it on in FIREBREAK_TOKEN");
}

Status Joins::may_join(const Tenant& tenant, const abi::Join& request) const {
  const bool active = request.role == abi::Role::Active;
  const pair::Phase phase = tenant.pair.phase;
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

void Joins::join(Connection& connection, const abi::Join& request) {
  constexpr std::size_t longest_attempt = 64, longest_path = 4096;  // attempts are kept while the join waits
  if (request.attempt.size() > longest_attempt) {
    return at_.answers.give(connection, fail(ErrorCode::InvalidArgument,
                                             "what tells one attempt to join from another is "
                                             "too long"));
  }
  if (request.pipe_directory.size() > longest_path)
    return at_.answers.give(connection, fail(ErrorCode::InvalidArgument, "its MPS directory is no path"));
  if (auto may = may_be(connection, request.tenant, request.token); !may)
    return at_.answers.give(connection, may);
  // The join may have waited.
  if (!connection.has_its_peer(at_.kernel)) return at_.answers.give(connection, not_in_that_role("join"));
  const bool is_new = !at_.tenants.contains(request.tenant);
  auto tenant = tenant_named(request.tenant, connection.peer().uid);
  if (!tenant) return at_.answers.give(connection, propagate(tenant));
  if (has_joined(connection, **tenant, request)) {
    if (request.role == abi::Role::Standby) stands_by_again(**tenant, false);
    return welcome(connection, **tenant, request.role);
  }
  if (auto may = may_join(**tenant, request); !may) return at_.answers.give(connection, may);
  if (request.role == abi::Role::Active && at_.deaths.has_dying(request.tenant)) {
    at_.deaths.await(connection.asker(), request, connection.peer().pid);
    return;
  }
  const pid_t pid = connection.peer().pid;
  const auto adopted = take_on(connection, {request.tenant, request.role, pid, {}}, request.pipe_directory);
  if (!adopted) return at_.answers.give(connection, adopted);

  const bool active = request.role == abi::Role::Active;
  Member& member = (*tenant)->member(request.role);
  if (member.pid != pid) {
    at_.answers.give(connection, not_in_that_role("join"));
    if (is_new) at_.memory.forget_if_empty(request.tenant);  // the process is another tenant's already
    return;
  }
  member.image = os::image_of(at_.kernel, pid);
  if (member.start_time.empty()) member.start_time = start_time_of(at_.kernel, pid);
  if (Process* process = at_.processes.living(pid)) process->become(ProcessState::Running);
  member.done = 0;  // the number was that of an earlier session in the same process
  member.attempt = request.attempt;
  member.connection = connection.id();
  if (active) at_.follower.follow_progress(**tenant);
  if (active && (*tenant)->pair.standby == pair::Standby::None)
    (*tenant)->unprotected_since = at_.clock.now();
  tell_joined(**tenant, member, abi::to_string(request.role));
  // First, since an active that begins anew where its tenant was lost begins an epoch.
  at_.pairs.advance(**tenant, active ? pair::EventType::ActiveJoined : pair::EventType::StandbyJoined);
  welcome(connection, **tenant, request.role);
}

/// The agent before ended, or the connection, before it was answered.
bool Joins::has_joined(const Connection& connection, Tenant& tenant, const abi::Join& request) const {
  const Member& member = tenant.member(request.role);
  return !request.attempt.empty() && member.attempt == request.attempt && member.pid == connection.peer().pid;
}

void Joins::welcome(Connection& connection, Tenant& tenant, abi::Role role) {
  Member& member = tenant.member(role);
  member.connection = connection.id();
  tenant.say_whether_turns_are_given(!at_.options.turns->is_free());
  at_.records.save();
  const auto entries = static_cast<std::uint32_t>(tenant.vault.entries().size());
  connection.answer(
      abi::Joined{tenant.pair.epoch, Tenant::arena_base, entries, at_.records.returns_ms(),
                  member_number(member), SharedWeights::first_address, SharedWeights::address_bytes},
      tenant.page_descriptor());
  at_.memory.send_allocations(connection, tenant);
}

void Joins::tell_joined(const Tenant& tenant, const Member& member, const std::string& how) {
  abi::Event event;
  event.what = abi::EventKind::Joined;
  event.tenant = tenant.name();
  event.domain = member.domain;
  event.pid = member.pid;
  event.text = how;
  at_.teller.tell(std::move(event));
}

void Joins::ready(Connection& connection) {
  Tenant* tenant = at_.tenants.of(connection, &Tenant::standby);
  if (tenant == nullptr) return at_.answers.give(connection, not_in_that_role("ready"));
  at_.warm_standbys.warmed_up(*tenant, connection.asker());
}

Status Joins::rejoin(Connection& connection, const abi::Rejoin& request) {
  Tenant* found = at_.tenants.find(request.tenant);
  if (found == nullptr || !may_be(connection, request.tenant, request.token)) {
    return fail(ErrorCode::NotFound, fmt::format("nobody knows tenant '{}' here", request.tenant));
  }
  Tenant& tenant = *found;
  for (Member* member : {&tenant.active, &tenant.standby, &tenant.old_active}) {
    if (member->pid != connection.peer().pid) continue;
    const bool is_standby = member == &tenant.standby;
    if (is_standby && tenant.pair.phase == pair::Phase::Lost) return nobody_needs_it(tenant);
    member->connection = connection.id();
    tenant.say_whether_turns_are_given(!at_.options.turns->is_free());
    at_.memory.send_allocations(connection, tenant);
    if (is_standby) stands_by_again(tenant, request.ready);
    return {};
  }
  return fail(ErrorCode::NotFound,
              fmt::format("process {} is none of tenant '{}'", connection.peer().pid, request.tenant));
}

void Joins::stands_by_again(Tenant& tenant, bool ready) {
  if (tenant.pair.standby == pair::Standby::None) {
    tell_joined(tenant, tenant.standby, "as a standby, which had lost its connection");
    at_.pairs.advance(tenant, pair::EventType::StandbyJoined);
  }
  if (ready && tenant.pair.standby == pair::Standby::Joined)
    at_.warm_standbys.warmed_up(tenant, std::nullopt);
}

Status Joins::hand_over(const abi::HandOver& request) {
  const auto active = at_.tenants.active_of(request.tenant, at_.server);
  if (!active) return propagate(active);
  if (at_.tenants.find(request.tenant)->pair.standby != pair::Standby::Ready)
    return no_standby_is_ready(request.tenant);
  (*active)->send(request);
  return {};
}

Status Joins::stand_down(Connection& connection, const abi::StandDown& request) {
  const pid_t pid = connection.peer().pid;
  for (auto& [name, tenant] : at_.tenants.all()) {
    // The process takes itself for the active: the answer was lost, or came too late. (Older programs do not
    // say.)
    const bool is_standby = tenant->standby.pid == pid && tenant->standby.connection == connection.id();
    if (is_standby && connection.numbers()) return {};
    if (tenant->active.pid == pid) {
      if (tenant->pair.standby != pair::Standby::Ready) return no_standby_is_ready(name);
      if (request.word != 0 && !tenant->take_hand_over(request.word))
        return fail(ErrorCode::Timeout, fmt::format("tenant '{}' has taken its word back", name));
      at_.pairs.advance(*tenant, pair::EventType::ActiveStoodDown);
      if (tenant->active.pid == pid) return no_standby_is_ready(name);
    }
    if (tenant->old_active.pid != pid) continue;
    if (tenant->standby.pid != 0) {
      return fail(ErrorCode::InvalidArgument, fmt::format("tenant '{}' already has a standby", name));
    }
    tenant->standby = std::exchange(tenant->old_active, {});
    tenant->standby.connection = connection.id();
    tell_joined(*tenant, tenant->standby, "as a standby, fenced before");
    at_.memory.send_allocations(connection, *tenant);
    at_.pairs.advance(*tenant, pair::EventType::StandbyJoined);
    return {};
  }
  return not_in_that_role("stand_down");
}

}  // namespace firebreak::agent
