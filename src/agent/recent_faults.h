// SPDX-License-Identifier: Apache-2.0
/// Faults that others still need to know of: the last one of each domain, and those that nobody could place.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "fault/fault.h"
#include "os/kernel.h"

namespace firebreak::agent {

/// Belongs to the loop's thread. The references outlive it.
class RecentFaults {
 public:
  RecentFaults(const Clock& clock, os::Kernel& kernel) : clock_(clock), kernel_(kernel) {}

  /// A conclusive one of a domain, now. `is_sure`: from who does not mistake the domain.
  void note(const std::string& domain, bool is_sure);
  /// What was noted of that domain was none.
  void forget(const std::string& domain);
  /// Whether that domain has one of which somebody was sure a moment ago.
  bool is_confirmed(std::string_view domain) const;
  /// For how long the last one of that domain is still under way; not positive: it has passed.
  Nanoseconds lasts(std::string_view domain) const;

  /// It names a process of which nobody knows, as the server of a domain's first client. False: it names
  /// none that is there, or too many wait.
  bool put_off(const fault::Fault& fault);
  /// Those that named that process before it was known as a server, and are not too old.
  std::vector<fault::Fault> take_of_server(pid_t server);

 private:
  using Times = std::map<std::string, Monotonic, std::less<>>;
  struct Unplaced {
    fault::Fault fault;
    std::string start_time;  ///< of the process that it names
  };

  const Clock& clock_;
  os::Kernel& kernel_;
  Times last_;       ///< of a domain
  Times last_sure_;  ///< of a domain, from who does not mistake it
  std::vector<Unplaced> unplaced_;
};

}  // namespace firebreak::agent
