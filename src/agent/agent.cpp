// SPDX-License-Identifier: Apache-2.0
#include "agent/agent.h"

#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>

namespace firebreak::agent {
namespace {

/// A domain's fault that is known from elsewhere, for Xids that name one of its clients: they come up to
/// 153 ms after UVM's event.
constexpr Milliseconds confirms_for{1000};
/// Nobody waits for it but the old active's end, and the word that the tenant is unprotected.
constexpr Milliseconds first_step_looks{100};
/// Those of one second: the driver prints no more of them.
constexpr std::size_t most_unplaced_faults = 64;

}  // namespace

Result<std::unique_ptr<Agent>> Agent::start(const AgentOptions& options, os::EventLoop& loop,
                                            os::Kernel& kernel, const Clock& clock, Domains& domains,
                                            Detectors& detectors, ServiceManager& manager) {
  std::unique_ptr<Agent> agent(new Agent(options, loop, kernel, clock, domains, detectors, manager));
  Agent* raw = agent.get();
  Domains::Callbacks of_domains;
  of_domains.on_clients_lost = [raw](const std::string& domain) { raw->on_clients_lost(domain); };
  of_domains.on_server = [raw](const std::string& domain, pid_t pid) { raw->on_server(domain, pid); };
  of_domains.on_clients = [raw](const std::string& domain, const mps::ClientList& clients) {
    raw->on_clients(domain, clients);
  };
  if (auto started = domains.start(std::move(of_domains)); !started) return propagate(started);
  Detectors::Callbacks callbacks;
  callbacks.on_fault = [raw](fault::Fault fault) { raw->on_fault(std::move(fault)); };
  callbacks.on_exit = [raw](pid_t pid) { raw->on_exit(pid); };
  callbacks.on_gpu_opened = [raw](pid_t pid) { raw->on_gpu_opened(pid); };
  callbacks.on_stray = [raw](const strays::Stray& stray) { raw->on_stray(stray); };
  callbacks.on_contained = [raw](pid_t pid, const std::string& what) { raw->on_contained(pid, what); };
  callbacks.on_guard = [raw](pid_t pid, const strays::GuardReport& guard) { raw->on_guard(pid, guard); };
  callbacks.on_gap = [raw](const watch::Gap& gap) { raw->on_gap(gap); };
  const auto missing = detectors.start(std::move(callbacks));
  for (const std::string& line : missing) spdlog::warn("{}", line);
  agent->begin_keeping();
  auto server = Server::start(loop, options.socket_path, *agent);
  if (!server) return propagate(server);
  agent->server_ = std::move(*server);
  manager.tell_ready();
  return agent;
}

// --- faults and ends
// ----------------------------------------------------------------------------------------------

void Agent::on_fault(fault::Fault fault) {
  const TellLater later(*this);
  complete(fault);
  if (fault.domain.empty()) ask_whose_server(fault);
  abi::Event event;
  event.at_ns = to_ns(fault.when);
  event.what = "fault";
  event.tenant = fault.tenant.value_or("");
  event.domain = fault.domain;
  event.pid = fault.pid.value_or(0);
  event.source = to_string(fault.source);
  event.text = describe(fault);
  // Promotions first: telling people costs microseconds that a tenant is waiting for.
  if (!fault.domain.empty()) {
    const bool is_sure = is_sure_of_domain(fault);
    if (fault.conclusive) last_fault_[fault.domain] = clock_.now();
    if (fault.conclusive && is_sure) last_sure_fault_[fault.domain] = clock_.now();
    for (auto& [name, tenant] : tenants_) {
      if (tenant->active.domain != fault.domain) continue;
      advance(*tenant, is_sure ? pair::event_of(fault) : pair::EventType::DangerSeen);
    }
    const bool ends_domain = is_sure && fault.conclusive && fault::ends_group(fault);
    if (ends_domain) give_up_standbys(fault.domain, "its MPS domain had a fault");
    save();
    if (ends_domain) {
      domains_.note_fault(fault.domain);
      let_go_of(fault.domain);  // what ran there has ended
    }
    // MPS knows whether it is the domain that it happened to.
    if (!is_sure && fault.conclusive && fault::ends_group(fault)) domains_.look_for_faults();
  }
  tell(std::move(event));
}

/// What was missed may have been a fault's only word. It is no fence; MPS knows what has become of its
/// clients.
void Agent::on_gap(const watch::Gap& gap) {
  abi::Event event;
  event.what = "gap";
  event.source = to_string(gap.source);
  event.text = gap.text;
  if (gap.pid) {
    event.pid = *gap.pid;
    const auto found = processes_.find(*gap.pid);
    event.tenant = found == processes_.end() ? "" : found->second.tenant;
    event.domain = found == processes_.end() ? gap.domain : found->second.domain;
  }
  tell(event);
  if (!gap.danger) return;
  for (const std::string& domain : domains_.names()) {
    if (event.domain.empty() || event.domain == domain) advance_actives(domain, pair::EventType::DangerSeen);
  }
  save();
  domains_.look_for_faults();
}

/// Names the domain by the process that the source named: one of ours, or one of our domains' MPS servers.
void Agent::complete(fault::Fault& fault) {
  if (!fault.pid) return;
  const auto found = processes_.find(*fault.pid);
  if (found != processes_.end()) {
    fault.domain = found->second.domain;
    if (!found->second.stranger) fault.tenant = found->second.tenant;
    return;
  }
  if (!fault.domain.empty()) return;
  if (auto domain = domains_.domain_of_server(*fault.pid)) fault.domain = *domain;
}

/// The server of a domain's first client may not be known yet: MPS is asked, and the fault waits for that.
void Agent::ask_whose_server(const fault::Fault& fault) {
  if (fault.source != fault::FaultSource::Xid || !fault.pid) return;
  std::erase_if(unplaced_faults_,
                [&](const UnplacedFault& each) { return clock_.now() - each.fault.when > confirms_for; });
  std::string start_time = start_time_of(*fault.pid);
  if (start_time.empty() || unplaced_faults_.size() >= most_unplaced_faults) return;
  unplaced_faults_.push_back({fault, std::move(start_time)});
  domains_.refresh_servers();
}

/// Faults that named that server before it was known as one.
void Agent::place_late(const std::string& domain, pid_t server) {
  const std::string start_time = start_time_of(server);
  std::vector<fault::Fault> its;
  std::erase_if(unplaced_faults_, [&](const UnplacedFault& each) {
    if (each.fault.pid != server || each.start_time != start_time) return false;
    if (clock_.now() - each.fault.when <= confirms_for) its.push_back(each.fault);
    return true;
  });
  for (fault::Fault& fault : its) {
    fault.domain = domain;
    on_fault(std::move(fault));
  }
}

/// An Xid names a client that comes to the driver's mind: often a neighbour of the culprit, and once a
/// process of another domain that was just starting (seen on an H100, driver 580). Whoever were promoted then
/// would meet an active that goes on. It does not mistake the MPS server.
bool Agent::is_sure_of_domain(const fault::Fault& fault) {
  if (fault.source == fault::FaultSource::ProcessExit) return false;
  if (fault.source != fault::FaultSource::Xid) return true;
  if (fault.pid && domains_.domain_of_server(*fault.pid)) return true;
  const auto seen = last_sure_fault_.find(fault.domain);
  return seen != last_sure_fault_.end() && clock_.now() - seen->second < confirms_for;
}

void Agent::on_exit(pid_t pid) {
  const auto found = processes_.find(pid);
  if (found == processes_.end()) return;
  Process process = std::move(found->second);
  processes_.erase(found);
  const bool held = holder_.keep(pid);
  const std::string how = process.end ? process.end->steps() : std::string();

  abi::Event event;
  event.what = "exited";
  event.tenant = process.tenant;
  event.domain = process.domain;
  event.pid = pid;
  event.text = how;
  tell(std::move(event));

  if (held) return await_last_kernel(pid, std::move(process));
  const auto tenant = tenants_.find(process.tenant);
  const bool has_tenant = tenant != tenants_.end();
  if (!has_tenant && !process.stranger) return say_farewell(pid, how);
  const bool harmless = is_harmless(process);
  if (has_tenant) leave(*tenant->second, pid);
  if (!harmless) endanger(process.domain);
  say_farewell(pid, how);
  if (others_in(process.domain).empty()) let_go_of(process.domain);
}

void Agent::leave(Tenant& tenant, pid_t pid) {
  if (tenant.active.pid == pid) {
    tenant.active.pid = 0;
    if (tenant.active_has_left()) advance(tenant, pair::EventType::ActiveFinished);
    advance(tenant, pair::EventType::ActiveExited);
  } else if (tenant.standby.pid == pid) {
    tenant.standby = {};
    advance(tenant, pair::EventType::StandbyExited);
  } else if (tenant.old_active.pid == pid) {
    tenant.old_active = {};
  }
  forget_if_empty(tenant.name());
  save();
}

/// Whoever ends without a word may have had work in flight, and then takes the domain along.
void Agent::endanger(const std::string& domain) { advance_actives(domain, pair::EventType::DangerSeen); }

/// 20 clients needed up to 7 s to notice by themselves (H100, driver 580: results/h100/server-end.json).
void Agent::on_clients_lost(const std::string& domain) {
  const TellLater later(*this);
  advance_actives(domain, pair::EventType::ContextLost);
  let_go_of(domain);
  give_up_standbys(domain, "its context is gone");
  forget_ended_servers();
  save();
}

/// A standby sleeps, and would find out only when it is to take over that its context is gone.
void Agent::give_up_standbys(const std::string& domain, const char* why) {
  for (auto& [name, tenant] : tenants_) {
    if (tenant->standby.domain != domain || tenant->standby.pid == 0) continue;
    end(tenant->standby, why);
    advance(*tenant, pair::EventType::StandbyExited);
  }
}

// --- pairs
// --------------------------------------------------------------------------------------------------------

void Agent::advance(Tenant& tenant, pair::EventType event) {
  const pair::Phase before = tenant.pair.phase;
  pair::Step step = pair::advance(tenant.pair, event);
  tenant.pair = step.state;
  if (before != step.state.phase) tenant.waiting_for.clear();
  for (const pair::Action& action : step.actions) act(tenant, action);
  look_for_first_step(tenant);
  if (before == tenant.pair.phase) return;
  abi::Event told;
  told.what = "phase";
  told.tenant = tenant.name();
  told.domain = tenant.active.domain;
  told.epoch = tenant.pair.epoch;
  told.text = fmt::format("{}: {} -> {}", pair::to_string(event), pair::to_string(before),
                          pair::to_string(tenant.pair.phase));
  tell(std::move(told));
  let_stand_by_if_needed(tenant);
}

void Agent::advance_actives(const std::string& domain, pair::EventType event) {
  for (auto& [name, tenant] : tenants_) {
    if (tenant->active.domain == domain && tenant->active.pid != 0) advance(*tenant, event);
  }
}

void Agent::act(Tenant& tenant, const pair::Action& action) {
  abi::Event told;
  told.tenant = tenant.name();
  switch (action.type) {
    case pair::ActionType::Promote:
      told.step = tenant.committed();
      told.at_ns = to_ns(clock_.now());
      tenant.promote(action.epoch, told.at_ns);
      told.what = "promote";
      told.pid = tenant.active.pid;
      told.epoch = action.epoch;
      told.domain = tenant.active.domain;
      break;
    case pair::ActionType::StartDeadline: {
      auto timer = loop_.after(Milliseconds(action.deadline_ms), [this, name = tenant.name()] {
        const auto found = tenants_.find(name);
        if (found == tenants_.end() || is_held_suspect(*found->second)) return;
        advance(*found->second, pair::EventType::DeadlinePassed);
        save();
      });
      if (timer) {
        tenant.deadline = std::move(*timer);
      } else {
        spdlog::error("no timer for {}: {}", tenant.name(), timer.error().message);
      }
      return;
    }
    case pair::ActionType::EndActive:
      return end(tenant.active, "its context is gone");
    case pair::ActionType::EndStandby:
      return end(tenant.standby, "it was not ready in time");
    case pair::ActionType::EndOldActive:
      return end(tenant.old_active, "it is fenced");
    case pair::ActionType::DismissStandby:
      return tenant.dismiss_standby();
    case pair::ActionType::BeginEpoch:
      tenant.begin_epoch(action.epoch);
      told.what = "begun anew";
      told.epoch = action.epoch;
      told.pid = tenant.active.pid;
      told.step = tenant.committed();
      break;
    case pair::ActionType::TellUnprotected:
      return tell_protection(tenant, false);
    case pair::ActionType::TellProtected:
      return tell_protection(tenant, true);
    case pair::ActionType::TellLost:
      told.what = "lost";
      told.text = action.reason;
      break;
    case pair::ActionType::TellWaiting:
      told.what = "waiting";
      told.text = tenant.waiting_for = action.reason;
      told.pid = tenant.active.pid;
      told.epoch = tenant.pair.epoch;
      spdlog::warn("tenant {} waits: {}", tenant.name(), action.reason);
      break;
  }
  tell(std::move(told));
}

/// One that is dead and held only for its last kernel gives no all-clear.
bool Agent::is_held_suspect(const Tenant& tenant) const {
  return tenant.pair.phase == pair::Phase::Suspecting && dying_.contains(tenant.active.pid);
}

/// Who never says that it runs does so all the same once a step of its own counts.
void Agent::look_for_first_step(Tenant& tenant) {
  if (tenant.pair.phase != pair::Phase::Promoting) return tenant.first_step.cancel();
  if (tenant.first_step) return;
  auto looks = loop_.every(first_step_looks, [this, name = tenant.name()] {
    const auto found = tenants_.find(name);
    if (found == tenants_.end() || !found->second->has_begun()) return;
    follow_progress(*found->second);
    advance(*found->second, pair::EventType::Resumed);
    save();
  });
  if (!looks) return spdlog::error("no timer for {}: {}", tenant.name(), looks.error().message);
  tenant.first_step = std::move(*looks);
}

void Agent::end(const Member& member, const char* why) {
  const auto found = processes_.find(member.pid);
  if (found == processes_.end()) return;
  spdlog::info("ending process {} of {}: {}", member.pid, found->second.tenant, why);
  detectors_.expect_exit(member.pid);
  if (auto sent = kernel_.send_signal(found->second.pidfd, SIGKILL); !sent) {
    spdlog::warn("process {} could not be ended: {}", member.pid, sent.error().message);
  }
}

Status not_in_that_role(const char* what) {
  return fail(ErrorCode::InvalidArgument, fmt::format("{} is not for a process in this role", what));
}

// --- who is who
// ---------------------------------------------------------------------------------------------------

Result<Tenant*> Agent::tenant_named(const std::string& name) {
  const auto found = tenants_.find(name);
  if (found != tenants_.end()) return found->second.get();
  if (!is_promised(name)) {
    if (auto room = room_for_process_of(name); !room) return propagate(room);
  }
  auto created = Tenant::create(name, options_.quota_bytes);
  if (!created) return propagate(created);
  keep(page_name(name), (*created)->page_descriptor());
  return tenants_.emplace(name, std::move(*created)).first->second.get();
}

Tenant* Agent::tenant_of(const Connection& connection, Member Tenant::*member) {
  for (auto& [name, tenant] : tenants_) {
    if (((*tenant).*member).connection == connection.id()) return tenant.get();
  }
  return nullptr;
}

Tenant* Agent::tenant_of(const Connection& connection) {
  for (Member Tenant::*member : {&Tenant::active, &Tenant::standby, &Tenant::old_active}) {
    if (Tenant* tenant = tenant_of(connection, member)) return tenant;
  }
  return nullptr;
}

Member* Agent::member_of(const Connection& connection) {
  for (Member Tenant::*member : {&Tenant::active, &Tenant::standby, &Tenant::old_active}) {
    if (Tenant* tenant = tenant_of(connection, member)) return &(tenant->*member);
  }
  return nullptr;
}

Result<Connection*> Agent::active_of(const std::string& tenant) {
  const auto found = tenants_.find(tenant);
  Connection* active = found == tenants_.end() ? nullptr : server_->find(found->second->active.connection);
  if (active != nullptr) return active;
  return fail(ErrorCode::NotFound, fmt::format("no tenant '{}' has an active process", tenant));
}

Status Agent::follow(pid_t pid, const std::string& tenant, const std::string& domain) {
  auto pidfd = kernel_.pidfd_open(pid);
  if (!pidfd) return propagate(pidfd, fmt::format("process {}", pid));
  // First: what it has already, a guard, is told of at once.
  processes_[pid] = Process{tenant, domain, std::move(*pidfd)};
  const auto named = tenant.empty() ? std::nullopt : std::optional(tenant);
  if (auto followed = detectors_.follow({pid, 0, domain, named}); !followed) {
    processes_.erase(pid);
    return followed;
  }
  return holder_.follow(pid);
}

/// Its heartbeats, where it has any: without them a long step cannot be told from a hang.
void Agent::follow_progress(const Tenant& tenant) {
  auto read = [this, name = tenant.name(), pid = tenant.active.pid]() -> std::optional<std::uint64_t> {
    const auto found = tenants_.find(name);
    if (found == tenants_.end() || found->second->active.pid != pid) return std::nullopt;
    return found->second->progress();
  };
  if (auto followed = detectors_.follow_progress(tenant.active.pid, std::move(read)); !followed)
    spdlog::warn("a hang of {} would not be seen: {}", tenant.name(), to_string(followed.error()));
}

void Agent::tell(abi::Event event) {
  if (event.at_ns == 0) event.at_ns = to_ns(clock_.now());
  spdlog::info("{} tenant={} domain={} pid={} source={} epoch={} step={} {}", event.what, event.tenant,
               event.domain, event.pid, event.source, event.epoch, event.step, event.text);
  if (subscribers_.empty()) return;
  untold_.push_back(abi::encode(event));
  if (tells_later_ == 0) tell_subscribers();
}

void Agent::tell_subscribers() {
  for (const std::string& text : std::exchange(untold_, {})) {
    for (const std::uint64_t id : subscribers_) {
      if (Connection* connection = server_->find(id)) connection->send_encoded(text);
    }
  }
}

}  // namespace firebreak::agent
