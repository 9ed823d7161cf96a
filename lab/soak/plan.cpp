// SPDX-License-Identifier: Apache-2.0
#include "soak/plan.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace firebreak::soak {
namespace {

/// Shares of all disturbances, where any of them may fall.
constexpr std::array shares = {
    std::pair(Target::Active, 25), std::pair(Target::Standby, 10),   std::pair(Target::Both, 5),
    std::pair(Target::Server, 10), std::pair(Target::Neighbour, 30), std::pair(Target::Inside, 20),
    std::pair(Target::Link, 20),   std::pair(Target::Starts, 5),     std::pair(Target::Crowd, 2)};
constexpr std::uint64_t hasty_percent = 10;
constexpr std::uint64_t guarded_percent = 20;
constexpr std::uint64_t longest_pause_ms = 100;
constexpr std::uint64_t slow_percent = 10;
constexpr std::uint64_t longest_stall_ms = 6000;  ///< an answer is waited for for 5 s
constexpr std::uint64_t most_tight_starts = 6;
/// Fewer than a tenant's process needs, and up to a few more.
constexpr std::uint64_t least_descriptors = 5, most_descriptors = 48;
constexpr std::uint64_t least_crowd = 4, most_crowd = 12;

}  // namespace

const char* to_string(Target target) {
  constexpr std::array names = {"active", "standby", "both",   "server", "neighbour",
                                "inside", "link",    "starts", "crowd"};
  return names.at(static_cast<std::size_t>(target));
}

Plan::Plan(PlanOptions options) : options_(std::move(options)), random_(options_.seed) {}

std::optional<Disturbance> Plan::next() {
  if (disturbances_ == options_.faults) return std::nullopt;
  ++disturbances_;
  Disturbance disturbance;
  disturbance.target = draw_target();
  if (disturbance.target == Target::Neighbour || disturbance.target == Target::Inside) {
    disturbance.kind = options_.kinds.at(below(options_.kinds.size()));
  }
  disturbance.is_guarded = disturbance.target == Target::Neighbour && below(100) < guarded_percent;
  disturbance.tenant = static_cast<std::uint32_t>(below(1 << 16));
  disturbance.after = Milliseconds(below(longest_pause_ms));
  disturbance.waits = below(100) >= hasty_percent;
  disturbance.agent = draw_agent_kill();
  draw_edges(disturbance);
  return disturbance;
}

/// Last, and only where there are any: the disturbances of a seed are what they were before there were edges.
void Plan::draw_edges(Disturbance& disturbance) {
  if (options_.has_slow_agents && below(100) < slow_percent) {
    disturbance.stall = Milliseconds(100 + below(below(2) == 0 ? longest_stall_ms / 10 : longest_stall_ms));
  }
  if (disturbance.target == Target::Link) {
    const std::uint64_t whose = 1 + below(3);
    disturbance.breaks_active = (whose & 1) != 0;
    disturbance.breaks_standby = (whose & 2) != 0;
  } else if (disturbance.target == Target::Starts) {
    disturbance.tight_starts = static_cast<std::uint32_t>(1 + below(most_tight_starts));
    disturbance.tight_descriptors =
        static_cast<std::uint32_t>(least_descriptors + below(most_descriptors - least_descriptors));
  } else if (disturbance.target == Target::Crowd) {
    disturbance.crowd = static_cast<std::uint32_t>(least_crowd + below(most_crowd - least_crowd + 1));
  }
}

Target Plan::draw_target() {
  const auto share_of = [this](const std::pair<Target, int>& one) {
    return std::ranges::find(options_.targets, one.first) == options_.targets.end() ? 0 : one.second;
  };
  const int all = std::transform_reduce(shares.begin(), shares.end(), 0, std::plus{}, share_of);
  auto left = static_cast<int>(below(static_cast<std::uint64_t>(all)));
  for (const auto& one : shares) {
    left -= share_of(one);
    if (left < 0) return one.first;
  }
  return options_.targets.front();
}

/// One whenever so many disturbances are due for it.
AgentKill Plan::draw_agent_kill() {
  const std::uint64_t due = std::uint64_t{disturbances_} * options_.agent_kills / options_.faults;
  if (agent_kills_ >= due) return AgentKill::None;
  ++agent_kills_;
  return below(2) == 0 ? AgentKill::Before : AgentKill::After;
}

}  // namespace firebreak::soak
