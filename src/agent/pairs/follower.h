// SPDX-License-Identifier: Apache-2.0
/// The follower: whom the agent follows. These are the tenants' processes, and clients of our domains that
/// nobody has placed there. A process that knows a domain's directory can join it, and the faults of such a
/// stranger end our tenants as any neighbour's.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/endings/hold/holder.h"
#include "agent/loop/surroundings.h"
#include "agent/parking/parking.h"
#include "agent/tenants/process.h"
#include "agent/tenants/teller.h"
#include "agent/tenants/tenants.h"
#include "ground/base/result.h"
#include "ground/os/kernel.h"

namespace firebreak::agent {

/// Belongs to the loop's thread.
class Follower {
 public:
  struct Knows {
    os::Kernel& kernel;
    Detectors& detectors;
    hold::Holder& holder;
    Processes& processes;
    Tenants& tenants;
    Teller& teller;
    Parking& parking;
    /// What is put off of the end of who had that number before is done first.
    std::function<void(pid_t pid)> settle_end = [](pid_t) {};
  };
  explicit Follower(Knows knows) : at_(knows) {}

  /// Says whether a number is still that of the process that is meant. Asked once that is open, so that the
  /// number means no other one from then on.
  using IsStillIt = std::function<bool()>;
  /// `tenant`: empty for a stranger. `where`: by more than its own word. NotFound: there is no such process,
  /// or another one has the number.
  Status follow(pid_t pid, const std::string& tenant, const std::string& domain, const Whereabouts& where,
                const IsStillIt& is_still_it = nullptr);
  /// Its active's heartbeats, where it has any: without them a long step cannot be told from a hang.
  void follow_progress(const Tenant& tenant);
  /// All clients of a domain, as MPS names them. Whether anything has come to be known by it.
  bool on_clients(const std::string& domain, const mps::ClientList& clients);
  /// It has ended. MPS may name its number for a while, which another process may have by then.
  void on_exit(const Process& process);
  /// Pipes of its core dumps, which go with it.
  void give_pipes(pid_t pid, std::vector<std::string> paths) {
    at_.parking.give_pipes(pid, std::move(paths));
  }
  void remove_pipes(const std::vector<std::string>& paths) { at_.parking.remove_pipes(paths); }
  /// True for a tenant's process.
  bool is_ours(pid_t pid) const;

 private:
  void meet_stranger(const std::string& domain, pid_t pid);
  bool learn(Process& process, const std::string& domain);
  Stranger describe_stranger(pid_t pid) const;

  Knows at_;
  std::set<std::pair<std::string, pid_t>> gone_;  ///< domains and clients that have ended, until MPS names
                                                  ///< them there no more
  std::map<pid_t, std::string> not_followed_;     ///< strangers that were told and are gone; their domains
};

}  // namespace firebreak::agent
