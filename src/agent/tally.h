// SPDX-License-Identifier: Apache-2.0
/// Counts what happens (agent/counts.h): each fault once, by what came of it for those who had not caused it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/counts.h"
#include "agent/surroundings.h"
#include "agent/tenants.h"
#include "base/clock.h"
#include "fault/incident.h"
#include "pair/pair.h"

namespace firebreak::agent {

/// Belongs to the loop's thread.
class Tally {
 public:
  struct Knows {
    const Clock& clock;
    const Domains& domains;
    const Tenants& tenants;
  };
  explicit Tally(Knows knows) : at_(knows) {}

  /// Goes on from what agents before have counted. Once, also where that is nothing.
  void begin(Counts before);
  /// With the restarts of the domains, which count them themselves.
  Counts counts() const;

  /// One that is new, has changed, or is closed: then it is counted, as soon as nobody is in doubt who was in
  /// its domain. `is_parked`: that domain is held now.
  void on_incident(const fault::Incident& incident, bool is_parked);
  /// A fault that is no incident, since it harmed nobody: its process's own guard has told of it.
  void contained(fault::FaultClass fault_class, PastFault fault);
  /// A standby has taken over, and that domain is the one that its tenant has left by it.
  void promoted(const std::string& tenant, const std::string& left, Fence fence);
  /// A pair stands elsewhere than before.
  void moved_on(const std::string& tenant, pair::Phase before, pair::Phase after);

 private:
  struct Fault {
    fault::FaultClass fault_class = fault::FaultClass::Unknown;
    std::string domain;
    std::set<std::string> affected;      ///< tenants with an active there when it was first told of
    std::optional<std::string> culprit;  ///< a tenant
    PastFault told = {};                 ///< names also one that is no tenant
    bool is_contained = false;
    bool is_parked = false;
    bool ends_domain = false;  ///< with whoever is in it, also who has not noticed yet
    Monotonic first_seen{};
  };
  struct Promotion {
    Monotonic when{};
    std::string left;  ///< the domain
  };

  void note_affected(Fault& fault, const fault::Incident& incident) const;
  bool is_in_doubt(const Fault& fault) const;
  bool was_promoted_since(const std::string& tenant, Monotonic when) const;
  bool has_ended(const std::string& tenant) const;
  FaultOutcome outcome_of(const Fault& fault) const;
  void count(const Fault& fault);
  void count_decided();

  Knows at_;
  Counts counts_;
  std::map<std::uint64_t, Fault> open_;        ///< by the incident's id
  std::vector<Fault> closed_;                  ///< not counted yet
  std::map<std::string, Promotion> promoted_;  ///< the last one of each tenant
  std::set<std::string> promoting_;            ///< whose is under way
  std::set<std::string> finished_;             ///< in good order, while faults are open
};

/// What a promotion's cause says of its fence.
Fence fence_of(pair::EventType cause);

}  // namespace firebreak::agent
