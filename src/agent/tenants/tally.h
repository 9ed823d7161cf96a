// SPDX-License-Identifier: Apache-2.0
/// Counts what happens (agent/tenants/counts.h): each fault once, by what came of it for those who had not
/// caused it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/faults/fault/incident.h"
#include "agent/loop/surroundings.h"
#include "agent/tenants/counts.h"
#include "agent/tenants/pair/pair.h"
#include "agent/tenants/tenants.h"
#include "ground/base/clock.h"

namespace firebreak::agent {

/// Belongs to the loop's thread.
class Tally {
 public:
  struct Knows {
    const Clock& clock;
    const Domains& domains;
    const Tenants& tenants;
  };
  struct Callbacks {
    /// True when the domain is parked, and has not fallen yet.
    std::function<bool(const std::string& domain)> is_held;
    /// True when that process has a spare driver instance elsewhere, and may go on there after its domain has
    /// fallen.
    std::function<bool(pid_t pid)> can_outlive;
    /// Empty: not known.
    std::function<std::string(pid_t pid)> control_group_of;
    /// Whether that GPU may be the domain's; no domain: may be any's. Null: it may.
    std::function<bool(const fault::Gpu& gpu, const std::string& domain)> may_be_on = nullptr;
    /// One has been counted: this is its account.
    std::function<void(const PastFault&)> on_counted = nullptr;
    /// Null: that of the machine.
    std::function<WallTime()> wall_now = nullptr;
    /// Whose a tenant is; empty: not known. Null: nobody's is.
    std::function<std::string(const std::string& tenant)> user_of = nullptr;
  };
  Tally(Knows knows, Callbacks callbacks) : at_(knows), callbacks_(std::move(callbacks)) {}

  /// Goes on from what agents before have counted. Once, also where that is nothing.
  void begin(Counts before);
  /// Returns the counts with the restarts of the domains, which count them themselves.
  Counts counts() const;

  /// One that is new, has changed, or is closed: then it is counted, as soon as nobody is in doubt who was in
  /// its domain, and that is not held. Returns its id; empty: it is none that is counted.
  std::string on_incident(const fault::Incident& incident);
  /// A domain that was held has fallen, with whoever is there and cannot outlive it.
  void fell(const std::string& domain);
  /// A fault that is no incident, since it harmed nobody: its process's own guard has told of it.
  void contained(fault::FaultClass fault_class, PastFault fault);
  /// The report of an exception there has been begun: it is of the fault that this exception is, or will be.
  void note_report(const std::string& domain, const std::string& report);
  /// A standby has taken over, and that domain is the one that its tenant has left by it.
  void promoted(const std::string& tenant, const std::string& left, Fence fence);
  /// A pair stands elsewhere than before.
  void moved_on(const std::string& tenant, pair::Phase before, pair::Phase after);

 private:
  struct Fault {
    fault::FaultClass fault_class = fault::FaultClass::Unknown;
    std::string domain;
    std::set<std::string> affected;         ///< tenants with an active there when it was first told of
    std::map<std::string, pid_t> standbys;  ///< standbys that were there then, by their tenants
    std::optional<std::string> culprit;     ///< a tenant
    PastFault told = {};                    ///< names also one that is no tenant
    bool is_contained = false;
    bool is_parked = false;
    bool has_fallen = false;       ///< its domain, which was parked
    std::set<std::string> fallen;  ///< tenants, with it
    bool ends_domain = false;      ///< the fault ends whoever is in the domain, also who has not noticed yet
    bool names_exception = false;  ///< a core dump does
    Monotonic first_seen{};
  };
  /// The time from an exception in a domain that is parked until what its fall brings has been told.
  struct Parked {
    std::uint64_t incident = 0;
    std::string fault;  ///< its id
    Monotonic since{};
    Monotonic until = Monotonic::max();
  };
  struct Promotion {
    Monotonic when{};
    std::string left;  ///< the domain
  };

  bool may_be_on(const fault::Gpu& gpu, const std::string& domain) const {
    return !callbacks_.may_be_on || callbacks_.may_be_on(gpu, domain);
  }
  std::string user_of(const std::string& tenant) const {
    return callbacks_.user_of ? callbacks_.user_of(tenant) : std::string();
  }
  void note_affected(Fault& fault, const fault::Incident& incident) const;
  bool is_aftermath(std::uint64_t id, const Fault& fault) const;
  void end_of_parking(const std::string& domain);
  void note_fallen(Fault& fault) const;
  bool is_in_doubt(const Fault& fault) const;
  bool was_promoted_since(const std::string& tenant, Monotonic when) const;
  bool has_ended(const std::string& tenant) const;
  FaultOutcome outcome_of(const Fault& fault) const;
  bool has_moved(const Fault& fault, const std::string& tenant) const;
  bool is_lost(const Fault& fault, const std::string& tenant) const;
  std::string became(const Fault& fault, const std::string& tenant) const;
  std::vector<Touched> touched_by(const Fault& fault) const;
  void identify(PastFault& fault);
  void take_reports(Fault& fault);
  void add_aftermath(const fault::Incident& incident, const std::string& id);
  void note(fault::FaultClass fault_class, FaultOutcome outcome, PastFault fault);
  void count(const Fault& fault);
  void count_decided();

  Knows at_;
  Callbacks callbacks_;
  Counts counts_;
  std::map<std::uint64_t, Fault> open_;                      ///< open faults by the incident's id
  std::vector<Fault> closed_;                                ///< closed faults that are not counted yet
  std::map<std::string, Parked> parked_;                     ///< the last time of each domain
  std::map<std::string, Promotion> promoted_;                ///< the last one of each tenant
  std::set<std::string> promoting_;                          ///< tenants whose promotion is under way
  std::map<std::string, std::vector<std::string>> reports_;  ///< reports by domain, without a fault yet
  std::set<std::string> finished_;  ///< tenants that finished in good order, while faults are open
};

/// Returns the fence that a promotion's cause means.
Fence fence_of(pair::EventType cause);

}  // namespace firebreak::agent
