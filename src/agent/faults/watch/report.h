// SPDX-License-Identifier: Apache-2.0
/// The lines of a watch: for people, and as JSON for programs.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "agent/faults/fault/incident.h"
#include "agent/faults/watch/process_scan.h"
#include "agent/faults/watch/watcher.h"

namespace firebreak::watch {

enum class Change { New, Changed, Closed };

/// The news among all that a Watcher says about its incidents: that there is one, that its class or culprit
/// is another now or the driver contained it, and that it is closed.
class IncidentNews {
 public:
  std::optional<Change> of(const fault::Incident& incident);

 private:
  struct Told {
    fault::FaultClass fault_class = fault::FaultClass::Unknown;
    fault::Confidence confidence = fault::Confidence::Unknown;
    std::optional<pid_t> culprit;
    bool contained = false;
    bool operator==(const Told&) const = default;
  };
  std::map<std::uint64_t, Told> told_;  ///< state of those that are open
};

/// "SM, Xid 43 (after Xid 13), domain /run/a, culprit unknown: …": what happened, who did it and why we say
/// so.
std::string describe(const fault::Incident& incident);

// Writes it for people.
std::string text_of(const SourceState& source);
std::string text_of(const GpuProcess& process, const Status& followed);
std::string text_of(const MpsServer& server, const Status& log);
/// `id`: as the agent gives it; empty: its number in this run.
std::string text_of(const fault::Incident& incident, Change change, const std::string& id = {});

// One JSON object each, told apart by "event": "source", "process", "server", "incident".
std::string json_of(const SourceState& source);
std::string json_of(const GpuProcess& process, const Status& followed);
std::string json_of(const MpsServer& server, const Status& log);
std::string json_of(const fault::Incident& incident, Change change);

}  // namespace firebreak::watch
