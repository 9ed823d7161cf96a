// SPDX-License-Identifier: Apache-2.0
#include "agent/parking/parked_incidents.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <string_view>

#include "agent/parking/park/core_dump_file.h"
#include "ground/os/processes.h"

namespace firebreak::agent {
namespace {

/// Limit of one dump on the disk.
constexpr std::size_t dump_bytes_max = std::size_t{128} << 20;

}  // namespace

void ParkedIncidents::open() {
  if (const Status opened = folder_.open(); !opened)
    spdlog::warn("reports of faults can be read by root alone: {}", to_string(opened.error()));
}

ParkedIncidents::Incident* ParkedIncidents::incident_of(const std::string& domain) {
  const auto found = incidents_.find(domain);
  return found == incidents_.end() ? nullptr : &found->second;
}

void ParkedIncidents::begin(const std::string& domain, const Clients& clients) {
  Incident& incident = incidents_[domain] = Incident{};
  incident.since = clock_.now();
  const std::time_t seconds = std::time(nullptr);
  incident.when = in_utc(std::chrono::system_clock::from_time_t(seconds));
  incident.stamp = fmt::format("{:%Y%m%dT%H%M%SZ}", fmt::gmtime(seconds));
  incident.clients = clients;
}

void ParkedIncidents::note(const std::string& domain, const std::string& what) {
  Incident* incident = incident_of(domain);
  if (incident == nullptr || incident->is_over) return;
  incident->timeline.push_back({to_ms(clock_.now() - incident->since), what});
  write_all(*incident);
}

void ParkedIncidents::note_exit(const std::string& domain, pid_t pid) {
  Incident* incident = incident_of(domain);
  if (incident == nullptr || incident->is_over) return;
  const auto client = incident->clients.find(pid);
  if (client != incident->clients.end()) note(domain, client->second + " has ended");
}

void ParkedIncidents::name(const std::string& domain, pid_t pid, const std::string& name,
                           const fault::CoreDumpException& exception) {
  Incident* incident = incident_of(domain);
  if (incident == nullptr || incident->is_over) return;
  culprit_of(*incident, domain, pid, name).evidence.exception = exception;
  note(domain, name + " is named: " + exception.type);
}

void ParkedIncidents::keep_dump(const std::string& domain, pid_t pid, const std::string& name,
                                std::span<const std::byte> dump, bool is_cut) {
  Incident* incident = incident_of(domain);
  // The exception is new in a domain that was not parked.
  const bool is_new = incident == nullptr || (incident->is_over && !incident->clients.contains(pid));
  if (is_new) begin(domain, {{pid, name}});
  incident = incident_of(domain);
  Culprit& culprit = culprit_of(*incident, domain, pid, name);
  if (const auto exception = park::own_exception_in(dump); exception && *exception)
    culprit.evidence.exception = **exception;
  const auto kept = dump.first(std::min(dump.size(), dump_bytes_max));
  culprit.evidence.dump_bytes = kept.size();
  culprit.evidence.is_cut = is_cut || kept.size() < dump.size();
  incident->timeline.push_back(
      {to_ms(clock_.now() - incident->since), "the core dump of " + name + " is complete"});
  write(*incident, culprit, kept);
}

void ParkedIncidents::end(const std::string& domain) {
  Incident* incident = incident_of(domain);
  if (incident == nullptr || incident->is_over) return;
  note(domain, "the domain has fallen");
  incident->is_over = true;
}

void ParkedIncidents::settle(const PastFault& fault) {
  for (auto& [domain, incident] : incidents_) {
    for (auto& [pid, culprit] : incident.culprits) {
      park::Evidence& evidence = culprit.evidence;
      if (std::ranges::find(fault.reports, evidence.id) == fault.reports.end()) continue;
      evidence.fault = fault.id;
      evidence.when = fault.at;
      evidence.affected.clear();
      for (const Touched& each : fault.touched) evidence.affected.push_back({each.tenant, each.became});
      write(incident, culprit);
    }
  }
}

ParkedIncidents::Culprit& ParkedIncidents::culprit_of(Incident& incident, const std::string& domain,
                                                      pid_t pid, const std::string& name) {
  const auto [found, is_new] = incident.culprits.try_emplace(pid);
  Culprit& culprit = found->second;
  if (!is_new) return culprit;
  culprit.evidence.id = incident.stamp + "-" + name;
  culprit.evidence.when = incident.when;
  culprit.evidence.name = name;
  culprit.evidence.domain = domain;
  culprit.evidence.pid = pid;
  culprit.user = user_of(pid);
  on_report_(domain, culprit.evidence.id);
  return culprit;
}

void ParkedIncidents::write(Incident& incident, Culprit& culprit,
                            std::optional<std::span<const std::byte>> dump) {
  park::Evidence& evidence = culprit.evidence;
  evidence.timeline = incident.timeline;
  const Status kept =
      dump ? folder_.keep(evidence, culprit.user, *dump) : folder_.keep(evidence, culprit.user);
  if (!kept) return spdlog::warn("{} is not kept in {}: {}", evidence.id, path_, to_string(kept.error()));
  if (dump) spdlog::info("the core dump of process {} is {}/{}.cudacore", evidence.pid, path_, evidence.id);
}

void ParkedIncidents::write_all(Incident& incident) {
  for (auto& [pid, culprit] : incident.culprits) write(incident, culprit);
}

/// Returns its user; for what is gone already ours, which is the safe one.
uid_t ParkedIncidents::user_of(pid_t pid) {
  const auto status = kernel_.read_file(os::proc_folder(pid) + "/status");
  return os::user_in(status.value_or("")).value_or(::geteuid());
}

}  // namespace firebreak::agent
