// SPDX-License-Identifier: Apache-2.0
/// The plan has what is done to the tenants of a soak, one disturbance after the other. Pure: everything
/// follows from the seed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "ground/base/clock.h"

namespace firebreak::soak {

/// The target of a disturbance.
enum class Target {
  Active,     ///< SIGKILL
  Standby,    ///< SIGKILL
  Both,       ///< SIGKILL to both at once: the tenant is lost, and is started again where it was
  Server,     ///< SIGKILL to the MPS server of the active's domain
  Neighbour,  ///< a different tenant raises a fault of its own
  Inside,     ///< the active itself raises a fault, at its next commit
  Link,       ///< the connections of its processes to the agent break, and they live
  Starts,     ///< SIGKILL to both, and who is started next has too few descriptors
  Crowd,      ///< nobody: more tenants come at once than the agent has descriptors for
};

inline constexpr std::array all_targets = {Target::Active, Target::Standby,   Target::Both,
                                           Target::Server, Target::Neighbour, Target::Inside};

/// The same and what falls on the edges of the promises.
inline constexpr std::array edge_targets = {Target::Active, Target::Standby,   Target::Both,
                                            Target::Server, Target::Neighbour, Target::Inside,
                                            Target::Link,   Target::Starts,    Target::Crowd};

/// "active", "standby", "both", "server", "neighbour", "inside", "link", "starts", "crowd".
const char* to_string(Target target);

enum class AgentKill { None, Before, After };

struct Disturbance {
  Target target = Target::Active;
  std::string kind;          ///< kind of the fault, where one is raised
  bool is_guarded = false;   ///< the neighbour is
  std::uint32_t tenant = 0;  ///< number of the tenant, modulo the count of those who run
  Milliseconds after{0};     ///< everybody was seen to be protected, or after the disturbance before
  /// true: waits for everybody to be protected; else it may well find nobody who is
  bool waits = true;
  AgentKill agent = AgentKill::None;  ///< the agent is killed, just before or just after
  Milliseconds stall{0};              ///< time for which the agent stands still, from just before on
  bool breaks_active = false;         ///< for Link: says whose connections break
  bool breaks_standby = false;
  std::uint32_t tight_starts = 0;       ///< number of processes, for Starts
  std::uint32_t tight_descriptors = 0;  ///< may have no more than that
  std::uint32_t crowd = 0;              ///< number of tenants, for Crowd
};

struct PlanOptions {
  std::uint64_t seed = 1;
  std::uint32_t faults = 0;
  std::uint32_t agent_kills = 0;   ///< spread evenly over the faults
  std::vector<std::string> kinds;  ///< kinds that neighbours and tenants raise; not empty
  std::vector<Target> targets{all_targets.begin(),
                              all_targets.end()};  ///< targets of disturbances; not empty
  bool has_slow_agents = false;
};

class Plan {
 public:
  explicit Plan(PlanOptions options);
  /// Empty: that was all.
  std::optional<Disturbance> next();

 private:
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  Target draw_target();
  AgentKill draw_agent_kill();
  void draw_edges(Disturbance& disturbance);

  PlanOptions options_;
  std::mt19937_64 random_;
  std::uint32_t disturbances_ = 0;
  std::uint32_t agent_kills_ = 0;
};

}  // namespace firebreak::soak
