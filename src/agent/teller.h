// SPDX-License-Identifier: Apache-2.0
/// Tells people what happens: the log, and whoever has subscribed.
#pragma once

#include <cstdint>
#include <set>

#include "abi/wire.h"
#include "agent/server.h"
#include "base/clock.h"

namespace firebreak::agent {

/// Belongs to the loop's thread.
class Teller {
 public:
  Teller(const Clock& clock, Server& server) : clock_(clock), server_(server) {}

  void subscribe(std::uint64_t connection) { subscribers_.insert(connection); }
  /// The connection is gone.
  void forget(std::uint64_t connection) { subscribers_.erase(connection); }

  /// Fields that `event` leaves open are filled in.
  void tell(abi::Event event);

 private:
  const Clock& clock_;
  Server& server_;
  std::set<std::uint64_t> subscribers_;
};

}  // namespace firebreak::agent
