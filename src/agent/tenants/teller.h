// SPDX-License-Identifier: Apache-2.0
/// Tells people what happens: the log, and whoever has subscribed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "agent/loop/server.h"
#include "agent/tenants/credentials.h"
#include "ground/base/clock.h"
#include "ground/base/result.h"
#include "shared/abi/wire.h"

namespace firebreak::agent {

/// Belongs to the loop's thread.
class Teller {
 public:
  Teller(const Clock& clock, Server& server, const Credentials& credentials)
      : clock_(clock), server_(server), credentials_(credentials) {}

  /// Largest number of one user's tenants' connections that are told: each pair has one. What is told costs
  /// the loop time for each.
  static constexpr std::size_t subscribers_of_user_max = 128;

  /// Subscribes a connection to what is for `who` to see: for a tenants' connection, what is told of its
  /// user's tenants. ResourceExhausted: its user has too many that are told.
  Status subscribe(std::uint64_t connection, const Asking& who);
  /// The connection is gone.
  void forget(std::uint64_t connection) { subscribers_.erase(connection); }

  /// Fields that `event` leaves open are filled in.
  void tell(abi::Event event);

 private:
  const Clock& clock_;
  Server& server_;
  const Credentials& credentials_;
  std::map<std::uint64_t, Asking> subscribers_;
};

}  // namespace firebreak::agent
