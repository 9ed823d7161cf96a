// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/domains/mps/client_limits.h"
#include "agent/loop/server.h"
#include "agent/loop/surroundings.h"
#include "agent/turns/policy.h"
#include "ground/base/clock.h"
#include "shared/abi/wire.h"
#include "shared/guard_page/probe_result.h"

namespace firebreak::agent {

struct AgentOptions {
  std::string socket_path;
  Environment tenant_environment;     ///< variables that every tenant needs besides its domain's, e.g. the
                                      ///< driver to load
  std::string version = {};           ///< version of this agent, for the status
  std::vector<MachineGpu> gpus = {};  ///< the machine's, as NVML counts them; empty: they are not known
  /// Says whether spares work on this machine; none: nobody asks for them.
  std::optional<guard::ProbeResult> spare_test = {};
  std::string guard_test =
      "not tested";  ///< says whether the guard works on this machine (shared/guard_page/probe_result.h)
  abi::StrayPolicy strays = abi::StrayPolicy::End;  ///< policy for tenants of which the operator says nothing
                                                    ///< else
  /// Largest number of stray blocks, each of which takes 2 MiB of memory: with more of them a tenant is ended
  /// that was only to be told of.
  std::uint64_t stray_blocks_max = 64;
  /// Time between SIGTERM and SIGKILL, for a tenant that strayed: what it would save is nonsense.
  Milliseconds stray_grace{100};
  /// Time for a tenant whose `firebreak run` was told to end.
  Milliseconds end_grace{2000};
  /// How long a dead client's address space is held for its last kernels (0: nothing is held); and for work
  /// that is known to run on.
  Milliseconds hold{5'000};
  Milliseconds longest_hold{30'000};
  /// Time for an active whose standby waits to take over, for work that is known to run.
  Milliseconds fence_wait{50};
  mps::ClientLimits limits = {};  ///< limits for tenants of which the operator says nothing else
  /// How long a tenant's memory outlives its last process, unless it has finished: who is started anew goes
  /// on.
  Milliseconds lease{30'000};
  /// How long processes wait for the next agent, where this one is killed and somebody keeps what it needs.
  Milliseconds returns_within{30'000};
  /// How long one that has lost its connection has to come back before it is ended, and of those a standby
  /// that the agent before has left to us before it counts as none: it looks for us every 20 ms.
  Milliseconds comes_back_within{15'000};
  Milliseconds stands_by_without{10'000};
  /// How long the MPS server of a standby is looked for before that counts as ready without.
  Milliseconds server_patience{20'000};
  /// Who computes now, of tenants that ask for their turns; and the longest time for which one waits while
  /// others are more urgent, or after our end.
  const turns::Policy* turns = *turns::policy_named("free");
  Milliseconds turn_max{2'000};
  std::uint64_t descriptors_max = 0;  ///< largest number of our descriptors; beyond it nobody is let in. 0:
                                      ///< nobody counts them
  std::uint64_t quota_bytes = 0;      ///< limit of each tenant's memory in the vault; 0: none
  std::vector<std::string> shelf_command = {};  ///< starts one (agent/service/shelf.h)
  /// How long the others of a domain whose kernel raised an exception have to leave it; 0: it falls at once.
  Milliseconds park{0};
  /// Time until a new agent has looked whether a server without clients is to be replaced: the parking client
  /// would be one.
  Milliseconds first_parking_client{2'500};
  std::string parking_client = {};                     ///< the program (program/parking_client/main.cpp)
  std::size_t dumps_bytes_max = std::size_t{1} << 30;  ///< limit of our memory for all core dumps
  std::string dump_directory = {};  ///< folder of tenants' core dumps, and of what is known of them
  /// Folder of the pipes that core dumps come by. Others reach what is in it and cannot list it: who knew the
  /// path of another's pipe could claim it (program/virtual/process_dumps.cpp), or name it as its own.
  std::string dump_pipe_directory() const { return dump_directory + "/" + dump_pipe_folder; }
  static constexpr const char* dump_pipe_folder = "pipes";
  /// Socket of tenants' processes, and who may come (agent/loop/server.h). Empty: they come to socket_path,
  /// as operators do.
  std::string tenants_socket_path = {};
  std::size_t clients_of_user_max = 4096;  ///< connections of all its tenants' clients
  std::size_t tenants_of_user_max = 64;    ///< largest number of one user's tenants, of who comes by the
                                           ///< tenants' socket
  os::SocketGroup operator_group = {};
  os::SocketGroup tenant_group = {};
  /// Socket of who only looks, and who may. Empty: there is none.
  std::string observers_socket_path = {};
  os::SocketGroup observer_group = {};

  /// Processes that do not let themselves be looked at (ground/os/broker.h), for the status; none: nobody
  /// counts them.
  std::function<std::vector<pid_t>()> not_answered = nullptr;

  Sockets sockets() const {
    return {socket_path,  operator_group,        tenants_socket_path,
            tenant_group, observers_socket_path, observer_group};
  }
};

}  // namespace firebreak::agent
