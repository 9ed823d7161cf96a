// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace firebreak::watch {
namespace {

std::string in_domain(const std::string& domain) {
  return domain.empty() ? std::string() : fmt::format(", MPS domain {}", domain);
}

std::string describe(const fault::Culprit& culprit) {
  const std::string evidence = fmt::format("{}", fmt::join(culprit.evidence, "; "));
  const std::string because = evidence.empty() ? "" : ": " + evidence;
  if (!culprit.pid) return "culprit unknown" + because;
  const std::string name = culprit.tenant ? fmt::format(" ({})", *culprit.tenant) : std::string();
  return fmt::format("culprit process {}{}, {}{}", *culprit.pid, name, to_string(culprit.confidence),
                     because);
}

const char* text_of(Change change) {
  switch (change) {
    case Change::New:
      return "";
    case Change::Changed:
      return " now";
    case Change::Closed:
      return " closed";
  }
  return "";
}

}  // namespace

std::optional<Change> IncidentNews::of(const fault::Incident& incident) {
  const Told now{incident.fault_class, incident.culprit.confidence, incident.culprit.pid,
                 fault::is_contained(incident)};
  const auto [told, is_new] = told_.try_emplace(incident.id, now);
  if (incident.closed) {
    told_.erase(told);
    return Change::Closed;
  }
  if (is_new) return Change::New;
  if (told->second == now) return std::nullopt;
  told->second = now;
  return Change::Changed;
}

std::string describe(const fault::Incident& incident) {
  std::string text = fmt::format("{}, {}", to_string(incident.fault_class), incident.kind);
  if (incident.address) text += fmt::format(", address {:#x}", *incident.address);
  const std::string xids = fmt::format("Xid {}", fmt::join(incident.xids, " "));
  if (!incident.xids.empty() && xids != incident.kind) text += ", " + xids;
  text += in_domain(incident.domain);
  if (const std::string gpu = fault::describe(incident.gpu); !gpu.empty()) text += ", " + gpu;
  if (!incident.signals.empty()) {
    text += fmt::format(", first seen by {}", to_string(incident.signals.front().source));
  }
  if (incident.signals.size() > 1) {
    const Nanoseconds lasted = incident.signals.back().when - incident.first_seen();
    text += fmt::format(", {} signals in {:.1f} ms", incident.signals.size(), to_ms(lasted));
  }
  return text + "; " + describe(incident.culprit);
}

std::string text_of(const SourceState& source) {
  const char* name = to_string(source.source);
  const std::string remark = source.remark.empty() ? "" : " (" + source.remark + ")";
  if (source.missing) return fmt::format("not heard: {}{}: {}", name, remark, to_string(*source.missing));
  return fmt::format("heard: {}{}", name, remark);
}

std::string text_of(const GpuProcess& process, const Status& followed) {
  const std::string who =
      fmt::format("process {} ({}){}", process.pid, process.name, in_domain(process.domain));
  return followed ? "following " + who
                  : fmt::format("cannot follow {}: {}", who, to_string(followed.error()));
}

std::string text_of(const MpsServer& server, const Status& log) {
  const std::string heard = log ? "its log in " + server.log_directory + " is heard" : to_string(log.error());
  return fmt::format("MPS server {}{}: {}", server.pid, in_domain(server.domain), heard);
}

std::string text_of(const fault::Incident& incident, Change change, const std::string& id) {
  return fmt::format("incident {}{}: {}", id.empty() ? std::to_string(incident.id) : id, text_of(change),
                     describe(incident));
}

}  // namespace firebreak::watch
