// SPDX-License-Identifier: Apache-2.0
/// The explicit end of everything, as `firebreak shutdown` or a Ctrl-C asks for it: the tenants in good
/// order, then the shelves and what the service manager keeps, then the MPS daemons. An agent that is only to
/// make room for the next one does nothing of it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "agent/endings/endings.h"
#include "agent/parking/parking.h"
#include "agent/tenants/placements.h"

namespace firebreak::agent {

/// Belongs to the loop's thread.
class OrderlyShutdown {
 public:
  struct Knows {
    os::EventLoop& loop;
    ServiceManager& manager;
    Domains& domains;
    ShelfQueue& shelves;
    Server& server;
    Tenants& tenants;
    Processes& processes;
    Placements& placements;
    Records& records;
    Parking& parking;
    TenantMemory& memory;
    Endings& endings;
  };
  /// `done` is called once, when nothing is left but the agent itself.
  OrderlyShutdown(Knows knows, std::function<void()> done) : at_(knows), done_(std::move(done)) {}

  /// Serves what an operator asks for; answered when it is done.
  void ask(Connection& connection, const abi::Shutdown& request);
  /// Whoever is there ends. `grace`: between SIGTERM and SIGKILL. Twice is as once.
  void begin(Milliseconds grace);
  /// Nobody is let in from now on.
  bool is_under_way() const { return is_under_way_; }

 private:
  std::vector<std::string> who_is_there() const;
  bool has_living(const std::string& tenant) const;
  void tenants_ended(const std::string& ends);
  void release_what_is_kept();
  void finish();

  Knows at_;
  std::function<void()> done_;
  bool is_under_way_ = false;
  bool are_gone_ = false;  ///< the tenants, or they do not go
  std::string ends_;
  std::vector<Asker> askers_;
  os::Watch patience_;
};

}  // namespace firebreak::agent
