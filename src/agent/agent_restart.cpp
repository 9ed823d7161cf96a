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

/// A process looks for the agent every 20 ms, and gives it 5 s to answer.
constexpr Milliseconds standby_returns_within{15'000};

/// Of a process: a document has room for so many. More are very many children.
constexpr std::size_t most_kept_traces = 256;

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
  const KeptCommon common = take_up_common(descriptors);
  warm_standbys_.restore_servers(common.servers);
  const std::vector<KeptTenant> kept = take_up_tenants(descriptors);
  std::map<std::string, std::vector<pid_t>> gone;
  for (const KeptTenant& each : kept) gone[each.name] = restore(each, descriptors);
  // Whatever follows writes down what is known, and by now all of them are. First who has lost its context:
  // nobody is to take over there.
  // Placements hold as long as anybody waits for us.
  placements_.restore(common.placements, Milliseconds(returns_ms()), [this] { save(); });
  for (const KeptServer& each : common.servers) {
    if (warm_standbys_.has_ended(each)) on_clients_lost(each.domain);
  }
  domains_.look_for_faults();
  for (const KeptTenant& each : kept) settle(each, gone[each.name]);
  for (const auto& [name, descriptor] : descriptors) manager_.drop(name);
  shelves_.be_kept();
  if (!document_) {
    auto document = KeptDocument::create();
    if (!document) return spdlog::error("nothing can be kept: {}", to_string(document.error()));
    // Nobody keeps anything for an agent that was started by hand, which is no error.
    if (!manager_.keep(document_name(), document->descriptor())) return shelves_.be_kept(false);
    document_ = std::move(*document);
  }
  save();
}

KeptCommon Agent::take_up_common(std::map<std::string, os::Fd>& descriptors) {
  os::Fd file = take_descriptor(descriptors, document_name());
  if (!file) return {};
  auto document = KeptDocument::open(std::move(file));
  auto read = document ? decode_common(document->read()) : propagate(document);
  if (document) document_ = std::move(*document);
  if (read) return std::move(*read);
  spdlog::error("which MPS servers there were, and who was told where to run, is not known any more: {}",
                to_string(read.error()));
  return {};
}

/// All whose document can be read.
std::vector<KeptTenant> Agent::take_up_tenants(std::map<std::string, os::Fd>& descriptors) {
  std::vector<KeptTenant> tenants;
  for (auto at = descriptors.begin(); at != descriptors.end();) {
    const std::string name = tenant_of_document(at->first);
    if (name.empty()) {
      ++at;
      continue;
    }
    auto document = KeptDocument::open(std::move(at->second));
    auto read = document ? decode_tenant(document->read()) : propagate(document);
    if (read) {
      document->close_descriptor();
      tenants.push_back(std::move(*read));
      tenant_documents_.emplace(name, TenantDocument{std::move(*document), {}});
      at = descriptors.erase(at);
    } else {
      spdlog::error("tenant {} is lost: {}", name, to_string(read.error()));
      ++at;
    }
  }
  return tenants;
}

/// Tenants first: who was placed is one of them before the placement goes.
void Agent::save() {
  if (!document_) return;
  for (const auto& [name, tenant] : tenants_.all()) save(*tenant);
  save_common();
}

/// What a tenant's process asks for changes that tenant alone.
void Agent::save_for(const Connection& connection) {
  const Tenant* its = tenants_.of(connection);
  if (its == nullptr) return save();
  if (!document_) return;
  save(*its);
  save_common();
}

void Agent::save_common() {
  KeptCommon common{warm_standbys_.servers(), placements_.kept()};
  if (written_common_ == common) return;
  const Status written = document_->write(encode_common(common));
  if (!written) return spdlog::error("{}", to_string(written.error()));
  written_common_ = std::move(common);
}

void Agent::save(const Tenant& tenant) {
  auto found = tenant_documents_.find(tenant.name());
  if (found == tenant_documents_.end()) {
    auto document = KeptDocument::create();
    if (!document) {
      return spdlog::error("tenant {} would not outlive the agent: {}", tenant.name(),
                           to_string(document.error()));
    }
    keep(tenant_document_name(tenant.name()), document->descriptor());
    document->close_descriptor();
    found = tenant_documents_.emplace(tenant.name(), TenantDocument{std::move(*document), {}}).first;
  }
  const auto text = found->second.text.update(kept_of(tenant), tenant.vault.entries(), tenant.clients);
  if (!text) return;
  if (auto written = found->second.document.write(*text); !written)
    spdlog::error("{}", to_string(written.error()));
}

/// Without what is kept beside it.
KeptTenant Agent::kept_of(const Tenant& tenant) const {
  KeptTenant kept;
  kept.name = tenant.name();
  kept.token = credentials_.known_token_of(tenant.name());
  kept.pair = tenant.pair;
  kept.strays = tenant.strays;
  kept.ended_by_us = tenant.ended_by_us;
  kept.active = tenant.active;
  kept.standby = tenant.standby;
  kept.old_active = tenant.old_active;
  kept.processes = kept_processes_of(tenant);
  kept.last_connection = tenant.clients.last_id();
  return kept;
}

/// Those in a role, and the dead that are in none any more.
std::vector<KeptProcess> Agent::kept_processes_of(const Tenant& tenant) const {
  std::vector<KeptProcess> kept;
  const auto add = [&](pid_t pid, const std::string& domain, bool has_left) {
    hold::Traces traces = holder_.traces_of(pid);
    if (traces.empty()) return;
    traces.marks.resize(std::min(traces.marks.size(), most_kept_traces));
    traces.others.resize(std::min(traces.others.size(), most_kept_traces));
    kept.push_back({pid, domain, has_left, std::move(traces)});
  };
  for (const Member* member : {&tenant.active, &tenant.standby, &tenant.old_active}) {
    if (member->pid != 0) add(member->pid, member->domain, false);
  }
  if (processes_.dying_count() == 0) return kept;
  for (const Process* each : processes_.all_dying()) {
    if (each->tenant() == tenant.name() && each->remainder.has_left) add(each->pid(), each->domain(), true);
  }
  return kept;
}

void Agent::keep(const std::string& name, int descriptor) {
  if (!document_) return;
  if (auto kept = manager_.keep(name, descriptor); !kept) {
    spdlog::error("{} would not outlive the agent: {}", name, to_string(kept.error()));
  }
}

/// The same of what is many: on a shelf.
void Agent::put_away(const std::string& name, int descriptor, std::function<void()> done) {
  if (!document_) return done();
  shelves_.put(name, descriptor, [name, done = std::move(done)](const Status& put) {
    if (!put) spdlog::error("{} would not outlive the agent: {}", name, to_string(put.error()));
    done();
  });
}

void Agent::tell_silence(const std::string& shelf, bool is_silent) {
  abi::Event event;
  event.what = is_silent ? abi::EventKind::ShelfSilent : abi::EventKind::ShelfAnswers;
  event.text = shelf + (is_silent ? " does not say what it keeps of tenants' memory, and is asked again"
                                  : " says again what it keeps of tenants' memory");
  spdlog::warn("{}", event.text);
  teller_.tell(std::move(event));
}

/// Returns those of its processes that ended while nobody looked.
std::vector<pid_t> Agent::restore(const KeptTenant& kept, std::map<std::string, os::Fd>& descriptors) {
  auto made =
      Tenant::restore(kept.name, options_.quota_bytes, take_descriptor(descriptors, page_name(kept.name)));
  if (!made) {
    spdlog::error("tenant {} is lost: {}", kept.name, to_string(made.error()));
    return {};
  }
  promoter_.reserve(tenants_.all().size() + 1);
  Tenant& tenant = tenants_.put(std::move(*made));
  tenant.pair = kept.pair;
  tenant.strays = kept.strays;
  tenant.ended_by_us = kept.ended_by_us;
  credentials_.restore(kept.name, kept.token);
  restore_memory(tenant, kept);
  restore_clients(tenant, kept);
  std::vector<pid_t> gone = restore_members(tenant, kept);
  // A promotion that was carried out, and not written down any more.
  if (tenant.standby.pid != 0 && tenant.was_promoted(tenant.standby, kept.pair.epoch + 1)) {
    tenant.take_turns();
    tenant.pair = {pair::Phase::Promoting, pair::Standby::None, kept.pair.epoch + 1};
  }
  tell_restored(tenant);
  take_up(tenant);
  return gone;
}

void Agent::restore_memory(Tenant& tenant, const KeptTenant& kept) {
  std::vector<std::string> names;
  std::vector<std::string> allocations;
  for (const KeptAllocation& each : kept.allocations) {
    const Status added = tenant.vault.add({each.name, each.address, each.size_bytes, each.memory, {}, true});
    if (!added) spdlog::error("memory of tenant {} is lost: {}", kept.name, to_string(added.error()));
    names.push_back(memory_name(kept.name, each.name));
    allocations.push_back(each.name);
  }
  if (names.empty()) return;
  ++tenant.awaited_answers;
  shelves_.have(std::move(names), [this, name = kept.name, allocations](const std::vector<bool>& there) {
    forget_lost_memory(name, allocations, there);
    take_up_again(name);
  });
}

/// What was written down, and never came to a shelf, or went with it.
void Agent::forget_lost_memory(const std::string& tenant, const std::vector<std::string>& allocations,
                               const std::vector<bool>& there) {
  Tenant* found = tenants_.find(tenant);
  if (found == nullptr) return;
  for (std::size_t i = 0; i < allocations.size(); ++i) {
    if (there[i]) continue;
    spdlog::error("memory '{}' of tenant {} is lost", allocations[i], tenant);
    found->vault.forget(allocations[i]);
    if (const auto its = tenant_documents_.find(tenant); its != tenant_documents_.end())
      its->second.text = {};
  }
  save();
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
    if (!lives || !follow(its->pid, tenant.name(), its->domain)) {
      gone.push_back(its->pid);
    } else if (!its->image.empty()) {  // it had joined
      processes_.living(its->pid)->become(ProcessState::Running);
    }
  }
  if (tenant.active.pid != 0) follow_progress(tenant);
  return gone;
}

/// A lease that had begun begins once more: nobody knows how long the agent was away. Whoever ended before
/// anybody had duplicates for us: of who else keeps its address space, forks are known, and what the agent
/// before has written down.
void Agent::settle(const KeptTenant& kept, const std::vector<pid_t>& gone) {
  for (const pid_t pid : gone) {
    Tenant* tenant = tenants_.find(kept.name);
    if (tenant == nullptr) break;
    const Member& active = tenant->active;
    const auto its = std::ranges::find(kept.processes, pid, &KeptProcess::pid);
    const auto traces = its == kept.processes.end() ? hold::Traces{active.image, {}, {}} : its->traces;
    if (active.pid == pid && holder_.keep(pid, traces)) {
      await_last_kernel(processes_.add_dead(pid, kept.name, active.domain));
    } else {
      leave(*tenant, pid);
    }
  }
  for (const KeptProcess& each : kept.processes) {
    if (!each.has_left || !tenants_.contains(kept.name)) continue;
    if (holder_.keep(each.pid, each.traces))
      await_last_kernel(processes_.add_dead(each.pid, kept.name, each.domain));
  }
  forget_if_empty(kept.name);
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
    send_allocations(connection, tenant);
    if (is_standby) stands_by_again(tenant, request.ready);
    return {};
  }
  return fail(ErrorCode::NotFound,
              fmt::format("process {} is none of tenant '{}'", connection.peer().pid, request.tenant));
}

void Agent::stands_by_again(Tenant& tenant, bool ready) {
  if (tenant.pair.standby == pair::Standby::None) {
    tell_joined(tenant, tenant.standby, "as a standby, which had lost its connection");
    advance(tenant, pair::EventType::StandbyJoined);
  }
  if (ready && tenant.pair.standby == pair::Standby::Joined) warm_standbys_.warmed_up(tenant, std::nullopt);
}

/// One without a connection cannot take over, and while it is there no other one is started.
void Agent::await_return(Tenant& tenant) {
  Process* process = processes_.living(tenant.standby.pid);
  if (process == nullptr) return;
  auto look = loop_.after(standby_returns_within, [this, name = tenant.name(), pid = tenant.standby.pid] {
    Tenant* found = tenants_.find(name);
    if (found == nullptr || found->standby.pid != pid) return;
    if (found->standby.connection == 0)
      end(found->standby, "a standby that has lost its connection, and did not come back");
  });
  if (!look) return spdlog::error("standby {} is not looked at: {}", process->pid(), to_string(look.error()));
  process->look = std::move(*look);
}

}  // namespace firebreak::agent
