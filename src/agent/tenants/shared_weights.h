// SPDX-License-Identifier: Apache-2.0
/// Weights that several tenants map: who made them, who has them, where they lie, and when they go. Pure, but
/// for the descriptors that its vaults own.
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/tenants/vault/vault.h"
#include "ground/base/clock.h"
#include "ground/base/result.h"

namespace firebreak::agent {

/// Says whose they are. Another user's tenant of the same name has its own.
struct WeightsName {
  uid_t user = 0;
  std::string owner;  ///< the tenant that made them, which need not be there any more
  friend auto operator<=>(const WeightsName&, const WeightsName&) = default;
};

/// Belongs to the loop's thread. What one tenant makes is shared at once, by share(); before that it is that
/// tenant's alone, and ends with it. From then on it lives while any tenant has it, and for a lease after.
class SharedWeights {
 public:
  /// The addresses of shared memory, beyond the tenants' arena and the window of addresses that the instances
  /// of the driver have in common; programs are loaded behind them. Each piece's are its own on this machine.
  static constexpr std::uint64_t first_address = 0x5400'0000'0000;
  static constexpr std::uint64_t address_bytes = std::uint64_t{1} << 40;

  struct Group {
    vault::Vault pieces;
    bool is_shared = false;
    std::set<std::string> tenants = {};          ///< tenants that have it, each with a process
    std::optional<Monotonic> nobody_since = {};  ///< the moment since which no tenant has what is shared
  };
  using Map = std::map<WeightsName, Group>;

  /// `quota_bytes`: of what a tenant makes, with what it has in its own vault; 0: no limit.
  SharedWeights(std::uint64_t quota_bytes, Milliseconds lease) : quota_bytes_(quota_bytes), lease_(lease) {}

  const Map& all() const { return groups_; }
  /// Null: there is nothing of that name, here and below.
  const Group* find(const WeightsName& name) const;
  const vault::Entry* find(const WeightsName& name, const std::string& piece) const;
  std::uint64_t bytes_of(const WeightsName& name) const;
  std::size_t descriptors_here() const;

  /// Takes a piece in that its owner made, and returns its address, which the piece does not have yet.
  /// `bytes_elsewhere`: of the owner's own vault, for the quota. InvalidArgument: it has been shared; and as
  /// Vault::add.
  Result<std::uint64_t> add(const WeightsName& name, vault::Entry piece, std::uint64_t bytes_elsewhere);
  void put_away(const WeightsName& name, const std::string& piece);
  /// Nobody has a descriptor of that piece any more. A group without any is gone.
  void forget(const WeightsName& name, const std::string& piece);
  /// Lets others have it: all is written. InvalidArgument: nothing was made, or it has been shared already.
  Status share(const WeightsName& name);
  /// The tenant has it from now on. Its owner has it before it is shared. NotFound: it is not there, or not
  /// shared yet. InvalidArgument: it is, and has no such piece.
  Result<const vault::Entry*> give(const WeightsName& name, const std::string& piece,
                                   const std::string& tenant);
  /// The tenant has no process any more.
  void leave(const std::string& tenant, Monotonic now);
  /// Returns what has ended by now, to be erased: nobody has had it for the lease.
  std::vector<WeightsName> ended(Monotonic now) const;
  /// Returns when the next one ends, unless a tenant takes it; none: none is about to.
  std::optional<Monotonic> next_end() const;
  void erase(const WeightsName& name) { groups_.erase(name); }

  /// Restores what an agent before kept; its pieces are put away. Tenants that are there no more have left.
  void restore(const WeightsName& name, Group group, Monotonic now);
  std::uint64_t quota_bytes() const { return quota_bytes_; }

 private:
  Result<std::uint64_t> free_address(std::uint64_t size_bytes) const;

  std::uint64_t quota_bytes_;
  Milliseconds lease_;
  Map groups_;
};

}  // namespace firebreak::agent
