// SPDX-License-Identifier: Apache-2.0
#include "soak/plan.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace firebreak::soak {
namespace {

/// In a hundred blows, where any may fall.
constexpr std::array shares = {std::pair(Target::Active, 25),    std::pair(Target::Standby, 10),
                               std::pair(Target::Both, 5),       std::pair(Target::Server, 10),
                               std::pair(Target::Neighbour, 30), std::pair(Target::Inside, 20)};
constexpr std::uint64_t hasty_percent = 10;
constexpr std::uint64_t guarded_percent = 20;
constexpr std::uint64_t longest_pause_ms = 100;

}  // namespace

const char* to_string(Target target) {
  constexpr std::array names = {"active", "standby", "both", "server", "neighbour", "inside"};
  return names.at(static_cast<std::size_t>(target));
}

Plan::Plan(PlanOptions options) : options_(std::move(options)), random_(options_.seed) {}

std::optional<Blow> Plan::next() {
  if (blows_ == options_.faults) return std::nullopt;
  ++blows_;
  Blow blow;
  blow.target = draw_target();
  if (blow.target == Target::Neighbour || blow.target == Target::Inside) {
    blow.kind = options_.kinds.at(below(options_.kinds.size()));
  }
  blow.is_guarded = blow.target == Target::Neighbour && below(100) < guarded_percent;
  blow.tenant = static_cast<std::uint32_t>(below(1 << 16));
  blow.after = Milliseconds(below(longest_pause_ms));
  blow.waits = below(100) >= hasty_percent;
  blow.agent = draw_agent_kill();
  return blow;
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

/// One whenever so many blows are due for it.
AgentKill Plan::draw_agent_kill() {
  const std::uint64_t due = std::uint64_t{blows_} * options_.agent_kills / options_.faults;
  if (agent_kills_ >= due) return AgentKill::None;
  ++agent_kills_;
  return below(2) == 0 ? AgentKill::Before : AgentKill::After;
}

}  // namespace firebreak::soak
