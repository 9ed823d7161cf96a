// SPDX-License-Identifier: Apache-2.0
/// The agent's status, as `firebreak status --json` prints it, for programs that act on it. What is missing
/// or of another type reads as empty: an agent of another version is no reason to fail.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "shared/link/pair_words.h"

namespace firebreak::link {

struct TenantView {
  std::optional<pair::Phase> phase;  ///< empty: one that is not known here; both
  std::optional<pair::Standby> standby_state;
  pid_t active = 0;  ///< 0: there is none; both
  pid_t standby = 0;
  std::string active_domain = {};
  std::uint64_t epoch = 0;
  std::uint64_t committed_steps = 0;
  std::string spare = {};  ///< how its spare driver instance stands, "protected"; empty: it has none
};

struct DomainView {
  std::string name;
  std::string gpu;             ///< UUID; empty: what CUDA finds
  std::string state;           ///< "serving", "draining", "restarting", "silent", "gpu_failed"
  std::string gpu_needs = {};  ///< where it has failed: "its GPU needs a reset (Xid 95, RESET_GPU)"
};

/// How parking stands in a domain (agent/parking/park/parking.h).
struct ParkingView {
  std::string state;  ///< "ready", "held", ...
  std::vector<pid_t> culprits;
};

/// One that was counted, in the agent's words (agent/tenants/counts.h).
struct FaultView {
  std::int64_t at_ns = 0;  ///< CLOCK_MONOTONIC
  std::string fault_class;
  std::string outcome;  ///< "contained", "parked", "failed_over", "lost"
  std::string domain;
  std::string culprit;  ///< a tenant, or "process 7"; empty: nobody is named
  std::string what;
  std::string control_group;  ///< the culprit's; empty: not known
  std::string id = {};        ///< as `firebreak faults` has it; empty: an agent of before gave none
  std::string at = {};        ///< the same moment in UTC, "2026-11-29T08:10:05Z"; empty: as the id
};

struct StatusView {
  std::map<std::string, TenantView> tenants;          ///< tenants by name
  std::vector<DomainView> domains;                    ///< domains in the agent's order
  std::map<std::string, std::vector<pid_t>> servers;  ///< the MPS servers, by domain
  std::map<std::string, ParkingView> parking;         ///< parking by domain; empty: domains are not parked
  std::string tenants_socket;                         ///< empty: the agent does not say
  std::vector<FaultView> faults;                      ///< the last ones in their order; tenants are told none

  /// Empty: it is not there.
  std::optional<TenantView> tenant(const std::string& name) const;
};

StatusView parse_status(const std::string& status_json);

/// "serving", "draining", "restarting", "silent", "gpu_failed", "parked".
std::string state_of(const StatusView& status, const DomainView& domain);
/// True when the domain serves, and nothing of it is held.
bool takes_clients(const StatusView& status, const DomainView& domain);

}  // namespace firebreak::link
