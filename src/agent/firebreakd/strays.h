// SPDX-License-Identifier: Apache-2.0
/// Strays: what becomes of a tenant whose stray or fault was contained. It computes nonsense, and its
/// neighbours are not harmed.
#pragma once

#include <sys/types.h>

#include <string>

#include "agent/endings/endings.h"
#include "agent/settings/options.h"
#include "agent/tenants/recent_faults.h"
#include "agent/tenants/tally.h"

namespace firebreak::agent {

/// Belongs to the loop's thread.
class Strays {
 public:
  struct Knows {
    const AgentOptions& options;
    Tenants& tenants;
    Processes& processes;
    RecentFaults& recent_faults;
    Tally& tally;
    Teller& teller;
    Endings& endings;
  };
  explicit Strays(Knows knows) : at_(knows) {}

  /// Takes the words of a process's guard.
  void on_guard(pid_t pid, const strays::GuardReport& guard);
  void on_stray(const strays::Stray& stray);
  /// The driver contained a fault of that process.
  void on_contained(pid_t pid, const std::string& what);

 private:
  abi::StrayPolicy policy_for(const Tenant* tenant) const;
  /// `tenant`: null: it is a stranger.
  void end(Tenant* tenant, pid_t pid, const std::string& why);

  Knows at_;
};

}  // namespace firebreak::agent
