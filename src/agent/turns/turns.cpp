// SPDX-License-Identifier: Apache-2.0
#include "agent/turns/turns.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>
#include <vector>

namespace firebreak::turns {
namespace {

/// A tenant that waits, as seen now.
struct Challenger {
  const Claim* claim = nullptr;
  bool is_due = false;  ///< it has waited for as long as anybody may
  Nanoseconds urgency{0};
  Monotonic since{};

  /// Those who are due go in the order in which they came.
  auto rank() const { return std::tuple(!is_due, is_due ? Nanoseconds(0) : urgency, since); }
};

void forget_others(TurnState& state, std::span<const Claim> claims) {
  std::set<std::string_view> names;
  for (const Claim& claim : claims) names.insert(claim.tenant);
  std::erase_if(state.waiting, [&](const auto& each) { return !names.contains(each.first); });
  if (!names.contains(state.going)) state.going.clear();
}

const Claim* claim_of(std::span<const Claim> claims, std::string_view tenant) {
  const auto found = std::ranges::find(claims, tenant, &Claim::tenant);
  return found == claims.end() ? nullptr : &*found;
}

/// Who would be next. Whoever is new begins to wait; one that an agent before had wait has waited enough.
Challenger next_of(const Policy& policy, const Limits& limits, TurnState& state,
                   std::span<const Claim> claims, Monotonic now) {
  Challenger next;
  for (const Claim& claim : claims) {
    if (claim.tenant == state.going) continue;
    const Monotonic came = claim.was_held ? now - limits.longest_wait : now;
    const Monotonic since = state.waiting.try_emplace(std::string(claim.tenant), came).first->second;
    const Challenger one{&claim, now - since >= limits.longest_wait, policy.urgency(claim, now), since};
    if (next.claim == nullptr || one.rank() < next.rank()) next = one;
  }
  return next;
}

/// Of users, of whom nobody is more urgent.
struct Equal final : Policy {
  Nanoseconds urgency(const Claim&, Monotonic) const override { return Nanoseconds(0); }
};

bool is_to_change(const Policy& policy, const Limits& limits, const TurnState& state, const Claim& going,
                  const Challenger& next, Monotonic now) {
  const bool is_over = now - state.began >= limits.turn();
  if (next.is_due || state.is_whole) {
    if (!is_over) return false;
    if (next.is_due) return true;
  }
  const Nanoseconds ahead = policy.urgency(going, now) - next.urgency;
  return ahead > limits.margin() || (is_over && ahead >= Nanoseconds(0));
}

}  // namespace

std::optional<Nanoseconds> advance(const Policy& policy, const Limits& limits, TurnState& state,
                                   std::span<const Claim> claims, Monotonic now) {
  forget_others(state, claims);
  const Challenger next = next_of(policy, limits, state, claims, now);
  if (next.claim == nullptr) return std::nullopt;
  const Claim* const going = claim_of(claims, state.going);
  if (going == nullptr || is_to_change(policy, limits, state, *going, next, now)) {
    if (going != nullptr) state.waiting.emplace(state.going, now);
    state.waiting.erase(std::string(next.claim->tenant));
    state.going = next.claim->tenant;
    state.began = now;
    state.is_whole = next.is_due;
  }
  if (state.waiting.empty()) return std::nullopt;
  const Nanoseconds left = limits.turn() - (now - state.began);
  return left > Nanoseconds(0) ? left : limits.turn();
}

std::map<std::string, Monotonic, std::less<>> Round::waiting() const {
  std::map<std::string, Monotonic, std::less<>> all;
  for (const auto& [user, state] : of_user) {
    all.insert(state.waiting.begin(), state.waiting.end());
    const auto its = users.waiting.find(user);
    if (its != users.waiting.end() && !state.going.empty()) all.emplace(state.going, its->second);
  }
  return all;
}

std::optional<Nanoseconds> advance(const Policy& policy, const Limits& limits, Round& round,
                                   std::span<const Claim> claims, Monotonic now) {
  std::map<std::string, std::vector<Claim>> by_user;
  for (const Claim& claim : claims) by_user[claim.user].push_back(claim);
  std::vector<Claim> users;
  for (const auto& [user, its] : by_user) {
    Claim& all = users.emplace_back();
    all.tenant = user;
    all.units = 1;
    all.was_held = std::ranges::all_of(its, &Claim::was_held);
  }
  std::erase_if(round.of_user, [&](const auto& each) { return !by_user.contains(each.first); });
  // The turn of a tenant goes on where it was when its user had to wait.
  for (auto& [user, state] : round.of_user) {
    if (user != round.users.going) state.began += now - round.looked;
  }
  round.looked = now;
  std::optional<Nanoseconds> again = advance(Equal(), limits, round.users, users, now);
  for (const auto& [user, its] : by_user) {
    TurnState& state = round.of_user[user];
    const auto its_next = advance(policy, limits, state, its, now);
    if (its_next && user == round.users.going) again = std::min(again.value_or(*its_next), *its_next);
  }
  return again;
}

}  // namespace firebreak::turns
