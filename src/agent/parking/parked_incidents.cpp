// SPDX-License-Identifier: Apache-2.0
#include "agent/parking/parked_incidents.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "agent/parking/park/core_dump_file.h"
#include "ground/os/processes.h"

namespace firebreak::agent {
namespace {

/// Limit of one dump on the disk.
constexpr std::size_t dump_bytes_max = std::size_t{128} << 20;
/// It is written in some ms.
constexpr std::size_t piece_bytes = std::size_t{4} << 20;

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
                                park::BudgetedBytes dump, bool is_cut) {
  Incident* incident = incident_of(domain);
  // The exception is new in a domain that was not parked.
  const bool is_new = incident == nullptr || (incident->is_over && !incident->clients.contains(pid));
  if (is_new) begin(domain, {{pid, name}});
  incident = incident_of(domain);
  Culprit& culprit = culprit_of(*incident, domain, pid, name);
  if (const auto exception = park::own_exception_in(dump.all()); exception && *exception)
    culprit.evidence.exception = **exception;
  culprit.evidence.dump_bytes = std::min(dump.all().size(), dump_bytes_max);
  culprit.evidence.is_cut = is_cut || culprit.evidence.dump_bytes < dump.all().size();
  incident->timeline.push_back(
      {to_ms(clock_.now() - incident->since), "the core dump of " + name + " is complete"});
  write(*incident, culprit);
  write_dump(culprit, std::move(dump));
}

void ParkedIncidents::write_dump(const Culprit& culprit, park::BudgetedBytes bytes) {
  auto file = folder_.begin_dump(culprit.evidence.id, culprit.user);
  if (!file)
    return spdlog::warn("the core dump of process {} is not kept in {}: {}", culprit.evidence.pid, path_,
                        to_string(file.error()));
  dumps_.push_back({culprit.evidence.id, culprit.evidence.pid, std::move(*file), std::move(bytes),
                    culprit.evidence.dump_bytes});
  if (dumps_.size() == 1) write_piece();
}

void ParkedIncidents::write_piece() {
  Dump& dump = dumps_.front();
  const auto bytes = dump.bytes.all().subspan(dump.written_bytes, std::min(dump.left_bytes, piece_bytes));
  Status written = dump.file.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  dump.written_bytes += bytes.size();
  dump.left_bytes -= bytes.size();
  const bool is_over = !written || dump.left_bytes == 0;
  if (is_over && written) written = dump.file.finish();
  if (is_over && written) {
    spdlog::info("the core dump of process {} is {}/{}.cudacore", dump.pid, path_, dump.id);
    folder_.make_room(dump.id);
  } else if (is_over) {
    spdlog::warn("the core dump of process {} is not kept in {}: {}", dump.pid, path_,
                 to_string(written.error()));
  }
  if (is_over) dumps_.pop_front();
  next_piece_.cancel();
  if (!dumps_.empty()) next_piece_ = loop_.after_or_now(Nanoseconds(0), [this] { write_piece(); });
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

void ParkedIncidents::write(Incident& incident, Culprit& culprit) {
  park::Evidence& evidence = culprit.evidence;
  evidence.timeline = incident.timeline;
  if (const Status kept = folder_.keep(evidence, culprit.user); !kept)
    spdlog::warn("{} is not kept in {}: {}", evidence.id, path_, to_string(kept.error()));
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
