// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "agent/faults/watch/report.h"

namespace firebreak::watch {
namespace {

using json = nlohmann::ordered_json;

template <class T>
json optional_json(const std::optional<T>& value) {
  return value ? json(*value) : json();
}

/// Addresses are text: a number of 64 bits does not survive every JSON reader.
json address_json(const std::optional<std::uint64_t>& address) {
  return address ? json(fmt::format("{:#x}", *address)) : json();
}

json why_not(const Status& status) { return status ? json() : json(to_string(status.error())); }

/// A process's name and a log's words may hold any bytes.
std::string line_of(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

const char* key_of(Change change) {
  switch (change) {
    case Change::New:
      return "new";
    case Change::Changed:
      return "changed";
    case Change::Closed:
      return "closed";
  }
  return "new";
}

json culprit_json(const fault::Culprit& culprit) {
  return {{"confidence", to_string(culprit.confidence)},
          {"pid", optional_json(culprit.pid)},
          {"name", optional_json(culprit.tenant)},
          {"evidence", culprit.evidence}};
}

json signal_json(const fault::Fault& signal, Monotonic first) {
  return {{"source", to_string(signal.source)},      {"after_ms", to_ms(signal.when - first)},
          {"class", to_string(signal.fault_class)},  {"kind", signal.kind},
          {"pid", optional_json(signal.pid)},        {"xid", optional_json(signal.xid)},
          {"address", address_json(signal.address)}, {"place", signal.place}};
}

}  // namespace

std::string json_of(const SourceState& source) {
  return line_of({{"event", "source"},
                  {"source", to_string(source.source)},
                  {"heard", !source.missing},
                  {"why_not", source.missing ? json(to_string(*source.missing)) : json()},
                  {"remark", source.remark}});
}

std::string json_of(const GpuProcess& process, const Status& followed) {
  return line_of({{"event", "process"},
                  {"pid", process.pid},
                  {"name", process.name},
                  {"domain", process.domain},
                  {"followed", followed.has_value()},
                  {"why_not", why_not(followed)}});
}

std::string json_of(const MpsServer& server, const Status& log) {
  return line_of({{"event", "server"},
                  {"pid", server.pid},
                  {"domain", server.domain},
                  {"log_directory", server.log_directory},
                  {"log_heard", log.has_value()},
                  {"why_not", why_not(log)}});
}

std::string json_of(const fault::Incident& incident, Change change) {
  json object{{"event", "incident"},
              {"id", incident.id},
              {"change", key_of(change)},
              {"class", to_string(incident.fault_class)},
              {"kind", incident.kind},
              {"gpu", optional_json(incident.gpu.number)},
              {"pci", incident.gpu.pci},
              {"mig", incident.gpu.instance},
              {"is_here", incident.gpu.is_here},
              {"domain", incident.domain},
              {"address", address_json(incident.address)},
              {"xids", incident.xids},
              {"contained", fault::is_contained(incident)},
              {"culprit", culprit_json(incident.culprit)},
              {"first_seen_ns", to_ns(incident.first_seen())},
              {"signals", json::array()}};
  for (const fault::Fault& signal : incident.signals) {
    object["signals"].push_back(signal_json(signal, incident.first_seen()));
  }
  return line_of(object);
}

}  // namespace firebreak::watch
