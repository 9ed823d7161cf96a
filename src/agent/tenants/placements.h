// SPDX-License-Identifier: Apache-2.0
/// Placement: who is told to run where, and with how much of the GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "agent/domains/mps/client_limits.h"
#include "agent/loop/surroundings.h"
#include "agent/settings/options.h"
#include "agent/tenants/credentials.h"
#include "agent/tenants/kept_state.h"
#include "agent/tenants/tenants.h"
#include "ground/base/result.h"
#include "ground/os/event_loop.h"

namespace firebreak::agent {

/// The place where a process was told to run that has not come yet.
struct Placement {
  std::uint64_t connection = 0;  ///< connection that asked; 0: the agent before was asked
  std::string tenant;
  abi::Role role = abi::Role::Active;
  std::string domain;
  mps::ClientLimits limits;
  std::string spare_domain = {};  ///< domain of its spare driver instance; empty: it has none, or has been
                                  ///< started
  std::vector<std::string> pipes = {};  ///< that were made for its core dumps
  std::set<std::string> expected_in =
      {};  ///< the domains that the agent has told it; of who was told nothing none
};

/// One a connection. Belongs to the loop's thread.
class Placements {
 public:
  struct Knows {
    const AgentOptions& options;
    os::EventLoop& loop;
    Domains& domains;
    Tenants& tenants;
    Credentials& credentials;
    /// Nobody comes to whom these were given.
    std::function<void(const std::vector<std::string>& pipes)> remove_pipes =
        [](const std::vector<std::string>&) {};
    /// Whether a process is in that domain by more than its own word (Process::may_be_in()).
    std::function<bool(pid_t pid, const std::string& domain)> may_be_in = [](pid_t, const std::string&) {
      return true;
    };
    /// True for a domain that MPS takes for well after an exception, whose clients run on
    /// (Parking::is_to_fall()).
    std::function<bool(const std::string& domain)> is_to_fall = [](const std::string&) { return false; };
  };
  explicit Placements(Knows knows) : at_(std::move(knows)) {}

  /// Chooses where it would run. InvalidArgument: there is no such tenant or limit. Also as choose_domain()
  /// (agent/domains/placement.h).
  Result<Placement> choose(std::uint64_t connection, const abi::Place& request) const;
  /// Puts a placement in the place of that connection's before. The tenant is that user's where it is
  /// nobody's yet. `agent_returns_ms`: how long it waits for the next agent.
  Result<abi::Placed> put(Placement placement, uid_t user, std::uint32_t agent_returns_ms);
  /// Of its core dumps, for who comes to it; they go where nobody does.
  void add_pipes(std::uint64_t connection, const std::vector<std::string>& pipes);
  /// Returns where such a process runs that has come now: where it was told to, however the domains are by
  /// now. One that was told nothing, as in a container, runs in the domain whose pipe directory it has; where
  /// that is none of ours, it is taken to run where it would be told to.
  Placement take(const std::string& tenant, abi::Role role, const std::string& pipe_directory = {});
  /// The connection is gone: nobody comes.
  void forget(std::uint64_t connection);

  /// True when such a process was told to come, on that connection or by the agent before.
  bool was_told(std::uint64_t connection, const std::string& tenant, abi::Role role) const;
  /// How many processes of that tenant were told to come.
  std::size_t count(const std::string& tenant) const;
  /// True when one was told to.
  bool has(const std::string& tenant) const;
  /// Tenants that are none yet.
  std::set<std::string> coming() const;

  std::vector<KeptPlacement> kept() const;
  /// Restores those that another agent kept, for as long as `lease`; then they are forgotten, and `is_over`
  /// is called.
  void restore(const std::vector<KeptPlacement>& kept, Milliseconds lease, std::function<void()> is_over);

 private:
  Result<std::string> domain_for(const std::string& tenant, abi::Role role, const std::string& gpu) const;
  /// Empty: none has it.
  std::string domain_of_half(const std::string& tenant, abi::Role role) const;
  Result<std::string> spare_domain_for(const std::string& domain) const;
  mps::ClientLimits limits_for(const abi::Place& request) const;
  Environment environment_of(const Placement& placement, const std::string& token,
                             std::uint32_t agent_returns_ms) const;

  Knows at_;
  std::vector<Placement> placements_;
  os::Watch lease_;  ///< lease of those whose connection was another agent's
};

}  // namespace firebreak::agent
