// SPDX-License-Identifier: Apache-2.0
/// Faults that others still need to know of: the last one of each domain, and those that nobody could place.
/// And whom a fault may still name.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "agent/faults/fault/fault.h"
#include "ground/base/clock.h"
#include "ground/os/kernel.h"

namespace firebreak::agent {

/// Belongs to the loop's thread. The references outlive it.
class RecentFaults {
 public:
  RecentFaults(const Clock& clock, os::Kernel& kernel) : clock_(clock), kernel_(kernel) {}

  /// Which Xids that name a client one confirms: none, where its source may mistake the domain itself. UVM
  /// knows of memory faults alone (docs/how/who-did-it.md).
  enum class Confirms { Nothing, MemoryFaults, All };

  /// A conclusive one of a domain, now.
  void note(const std::string& domain, Confirms confirms);
  /// UVM's event was that of a copy engine, which ends its own client alone: the event does not tell.
  void take_memory_fault_back(const std::string& domain);
  /// Forgets what was noted of that domain: it was no fault.
  void forget(const std::string& domain);
  /// True when that domain has one, of which somebody was sure a moment ago, that one of this class may be.
  bool is_confirmed(std::string_view domain, fault::FaultClass fault_class) const;
  /// Returns for how long the last one of that domain is still under way; not positive: it has passed.
  Nanoseconds lasts(std::string_view domain) const;

  /// Puts off a fault that names a process of which nobody knows, as the server of a domain's first client.
  /// False: it names none that is there, or too many wait.
  bool put_off(const fault::Fault& fault);
  /// Takes those that named that process before it was known as a server, and are not too old.
  std::vector<fault::Fault> take_of_server(pid_t server);

  /// A client of that domain has ended. The driver's line that names it may come after that.
  /// Where there are too many, the oldest go of the user whose most are.
  void note_end(pid_t pid, const std::string& domain, uid_t user);
  /// Returns where a client was that has ended a moment ago; empty: nobody of that number has, or it is
  /// another's.
  std::string domain_of_ended(pid_t pid) const;

 private:
  using Times = std::map<std::string, Monotonic, std::less<>>;
  struct Unplaced {
    fault::Fault fault;
    std::string start_time;  ///< start time of the process that it names
  };

  struct Ended {
    std::string domain;
    Monotonic when;
    uid_t user = 0;
    std::string start_time;  ///< empty: nobody knew it any more
  };

  void make_room();
  bool is_recent(const Times& times, std::string_view domain) const;

  const Clock& clock_;
  os::Kernel& kernel_;
  Times last_;         ///< last fault of a domain
  Times last_sure_;    ///< last fault of a domain, from who does not mistake it
  Times last_memory_;  ///< the same, of those that confirm memory faults alone
  std::vector<Unplaced> unplaced_;
  std::map<pid_t, Ended> ended_;
};

}  // namespace firebreak::agent
