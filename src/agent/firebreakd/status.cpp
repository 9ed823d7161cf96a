// SPDX-License-Identifier: Apache-2.0
#include "agent/firebreakd/status.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ground/os/descriptors.h"
#include "shared/guard_page/work_view.h"

namespace firebreak::agent {
namespace {

nlohmann::json described_limit(std::uint32_t limit) {
  return limit == 0 ? nlohmann::json(nullptr) : nlohmann::json(limit);
}

/// Its user's number; null: not known.
nlohmann::json described_owner(const std::optional<uid_t>& owner) {
  return owner ? nlohmann::json(*owner) : nlohmann::json(nullptr);
}

nlohmann::json described_quota(const vault::Vault& vault) {
  return vault.quota_bytes() == 0 ? nlohmann::json(nullptr) : nlohmann::json(vault.quota_bytes());
}

nlohmann::json described_time_since(const std::optional<Monotonic>& since, const Clock& clock) {
  if (!since) return nullptr;
  return std::chrono::duration_cast<Milliseconds>(clock.now() - *since).count();
}

nlohmann::json describe_member(const Member& member) {
  if (member.pid == 0) return nullptr;
  return {{"pid", member.pid},
          {"domain", member.domain},
          {"joined", member.connection != 0},
          {"sm_percent", described_limit(member.limits.sm_percent)},
          {"memory_mib", described_limit(member.limits.memory_mib)}};
}

/// Describes the guard of the active; of the standby where there is no active.
nlohmann::json describe_guard(const Tenant& tenant, const Detectors& detectors, abi::StrayPolicy by_default) {
  const pid_t pid = tenant.active.pid != 0 ? tenant.active.pid : tenant.standby.pid;
  const strays::Summary summary = detectors.straying_of(pid);
  const auto policy = tenant.strays == abi::StrayPolicy::Default ? by_default : tenant.strays;
  const strays::GuardReport report = summary.guard.value_or(strays::GuardReport{});
  const auto page = detectors.guard_of(pid);
  const auto work = page ? guard::state_of(page->work()) : guard::LaunchState::Unknown;
  return {{"state", summary.guard ? strays::to_string(report.state) : "none"},
          {"work", guard::to_string(work)},
          {"note", report.note},
          {"guard_range_bytes", report.guard_range_bytes},
          {"on_stray", abi::to_string(policy)},
          {"strays", summary.count},
          {"stray_blocks", summary.blocks},
          {"last_stray", tenant.last_stray}};
}

/// Null: it has none, or has not begun to use CUDA. Protected is who would outlive an exception now.
nlohmann::json describe_spare(const Tenant& tenant, const StatusSources& of) {
  auto report = of.spares.report_of(tenant.active.pid);
  if (!report) return nullptr;
  if (report->state == abi::SpareState::Protected) {
    const std::string lost = of.parking.why_lost_in(tenant.active.domain, tenant.active.pid);
    if (!lost.empty()) {
      report->state = abi::SpareState::Unprotected;
      report->reason = lost;
    }
  }
  return {{"state", to_string(report->state)},        {"reason", report->reason},
          {"domain", report->spare_domain},           {"moves", report->moves},
          {"gpu_memory_mib", report->gpu_memory_mib}, {"redone", report->redone},
          {"rest", abi::to_string(report->rest)},     {"rest_host_bytes", report->rest_host_bytes}};
}

nlohmann::json describe_turn(const TurnReport& report) {
  return {{"state", to_string(report.state)},
          {"class", report.its_class == turns::Class::Live ? "live" : "batch"},
          {"waits_ms", std::chrono::duration_cast<Milliseconds>(report.waits).count()}};
}

const char* state_of(const hold::Held& held, bool lives, bool is_waited_for) {
  if (!held.dead) return "ready";
  if (lives) return "given back";  // the process closed what it had opened, or became another program
  const bool has_ended = held.work == hold::WorkState::Ended;
  if (!held.others.none()) return has_ended && !is_waited_for ? "ended" : "held elsewhere";
  if (held.endless) return "endless";
  return held.work == hold::WorkState::Running ? "running" : "waiting";
}

/// Null: domains are not parked. Who is a culprit, and who prevents it, is the operators' to know.
nlohmann::json describe_parking(const StatusSources& of, const Asking& who, const std::string& domain) {
  if (of.options.park <= Milliseconds(0)) return nullptr;
  ParkingReport report = of.parking.report(domain);
  const bool is_prevented = !report.prevented_by.empty();
  if (who.entrance != Entrance::Operators) {
    const auto phase = report.phase;
    report = ParkingReport();
    report.phase = phase;
  }
  return {{"state", to_string(report.phase)},  {"culprits", report.culprits},
          {"prevented", is_prevented},         {"prevented_by", report.prevented_by},
          {"not_in_mode", report.not_in_mode}, {"news", report.news}};
}

nlohmann::json describe_domain(const mps::DomainReport& domain, const std::vector<pid_t>& clients,
                               const nlohmann::json& foreign, const nlohmann::json& parking) {
  return {{"name", domain.name},
          {"state", describe_state(domain)},
          {"gpu", domain.gpu},
          {"gpu_needs", domain.gpu_needs},
          {"daemon_pid", domain.daemon_pid},
          {"server_pids", domain.servers},
          {"clients", clients},
          {"foreign", foreign},
          {"parking", parking},
          {"daemon_restarts", domain.daemon_restarts},
          {"server_restarts", domain.server_restarts},
          {"news", domain.news}};
}

/// All of the machine; whose domains are there is in the domains.
nlohmann::json describe_gpus(const Gpus& gpus) {
  nlohmann::json all = nlohmann::json::array();
  for (const Gpus::Gpu& gpu : gpus.all()) {
    all.push_back({{"number", all.size()},
                   {"uuid", gpu.is.uuid},
                   {"pci", gpu.is.pci},
                   {"needs", fault::to_string(gpu.needs)},
                   {"reason", gpu.reason}});
  }
  return all;
}

bool is_to_see(const StatusSources& of, const Asking& who, const std::string& tenant) {
  return may_see(who, of.credentials.owner_of(tenant));
}

std::vector<pid_t> processes_in(const StatusSources& of, const Asking& who, const std::string& domain) {
  std::vector<pid_t> pids;
  for (const Process* each : of.processes.all_living()) {
    const bool is_there = each->domain() == domain && !each->stranger;
    if (is_there && is_to_see(of, who, each->tenant())) pids.push_back(each->pid());
  }
  return pids;
}

nlohmann::json foreign_json(const StatusSources& of, const Asking& who, const std::string& domain) {
  nlohmann::json all = nlohmann::json::array();
  if (who.entrance != Entrance::Operators) return all;
  for (const Process* each : of.processes.all_living()) {
    if (each->domain() != domain || !each->stranger) continue;
    all.push_back({{"pid", each->pid()},
                   {"name", each->stranger->name},
                   {"uid", each->stranger->user},
                   {"came", each->stranger->came}});
  }
  return all;
}

/// What tenants share, or are about to.
nlohmann::json describe_weights(const StatusSources& of, const Asking& who) {
  nlohmann::json all = nlohmann::json::array();
  for (const auto& [name, group] : of.weights.all()) {
    if (!may_see(who, name.user)) continue;
    all.push_back({{"owner", name.owner},
                   {"user", name.user},
                   {"bytes", group.pieces.total_bytes()},
                   {"allocations", group.pieces.entries().size()},
                   {"is_shared", group.is_shared},
                   {"tenants", group.tenants}});
  }
  return all;
}

/// Returns what is lacking in words, with the process.
std::vector<std::string> lacks_of(const StatusSources& of, const Tenant& tenant) {
  std::vector<std::string> all;
  for (const Member* member : {&tenant.active, &tenant.standby}) {
    if (member->pid == 0) continue;
    std::vector<std::string> its = of.detectors.lacks_of(member->pid);
    if (of.holder.is_large(member->pid))
      its.push_back(fmt::format("it has more than {} descriptors: what it opens is held late",
                                os::most_descriptors_of_a_process));
    if (of.holder.lacks(member->pid)) its.emplace_back("not all of it is held");
    for (const std::string& each : its) all.push_back(fmt::format("process {}: {}", member->pid, each));
  }
  return all;
}

}  // namespace

std::string status_json(const StatusSources& of, const Asking& who) {
  nlohmann::json document = {{"version", of.options.version},
                             {"socket", of.options.socket_path},
                             {"tenants_socket", of.options.sockets().of_tenants()},
                             {"guard_test", of.options.guard_test},
                             {"spare_test", of.options.spare_test ? describe(*of.options.spare_test) : ""},
                             {"not_heard", of.detectors.not_heard()}};
  const DescriptorUse use = of.budget.use();
  document["descriptors"] = {{"limit", use.limit},
                             {"open", use.open},
                             {"promised", use.promised},
                             {"reserve", use.reserve},
                             {"of_a_pair", use.of_a_pair}};
  const bool is_operator = who.entrance == Entrance::Operators;
  if (who.entrance != Entrance::Tenants) document["counts"] = to_json(of.tally.counts());
  document["not_answered"] =
      is_operator && of.options.not_answered ? of.options.not_answered() : std::vector<pid_t>();
  document["gpus"] = describe_gpus(of.gpus);
  nlohmann::json& domains = document["domains"] = nlohmann::json::array();
  for (const mps::DomainReport& domain : of.domains.reports()) {
    domains.push_back(describe_domain(domain, processes_in(of, who, domain.name),
                                      foreign_json(of, who, domain.name),
                                      describe_parking(of, who, domain.name)));
  }
  nlohmann::json& anchors = document["anchors"] = nlohmann::json::array();
  for (const mps::DomainReport& domain : of.domains.anchor_reports())
    anchors.push_back(describe_domain(domain, {}, nlohmann::json::array(), nullptr));
  nlohmann::json& tenants = document["tenants"] = nlohmann::json::array();
  for (const auto& [name, tenant] : of.tenants.all()) {
    if (!is_to_see(of, who, name)) continue;
    tenants.push_back({{"name", name},
                       {"owner", described_owner(of.credentials.owner_of(name))},
                       {"phase", pair::to_string(tenant->pair.phase)},
                       {"standby_state", pair::to_string(tenant->pair.standby)},
                       {"epoch", tenant->pair.epoch},
                       {"waiting_for", tenant->waiting_for},
                       {"committed_steps", tenant->committed()},
                       {"active", describe_member(tenant->active)},
                       {"standby", describe_member(tenant->standby)},
                       {"allocations", tenant->vault.entries().size()},
                       {"memory_bytes", tenant->vault.total_bytes()},
                       {"quota_bytes", described_quota(tenant->vault)},
                       {"unprotected_ms", described_time_since(tenant->unprotected_since, of.clock)},
                       {"lacks", lacks_of(of, *tenant)},
                       {"spare", describe_spare(*tenant, of)},
                       {"turn", describe_turn(of.turns.report_of(*tenant))},
                       {"guard", describe_guard(*tenant, of.detectors, of.options.strays)}});
  }
  document["shared"] = describe_weights(of, who);
  nlohmann::json& holds = document["holds"] = nlohmann::json::array();
  for (const hold::Held& held : of.holder.held()) {
    if (!is_to_see(of, who, of.processes.tenant_of(held.pid))) continue;
    const auto since_ms = std::chrono::duration_cast<Milliseconds>(held.since_death).count();
    const Process* const dying = of.processes.dying(held.pid);
    const bool is_waited_for = dying != nullptr && !dying->remainder.has_left;
    holds.push_back({{"pid", held.pid},
                     {"tenant", of.processes.tenant_of(held.pid)},
                     {"state", state_of(held, of.processes.living(held.pid) != nullptr, is_waited_for)},
                     {"others", describe(held.others)},
                     {"since_death_ms", held.dead ? nlohmann::json(since_ms) : nullptr}});
  }
  // A guard's note is the tenant's, and may hold any bytes.
  return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace firebreak::agent
