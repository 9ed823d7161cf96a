// SPDX-License-Identifier: Apache-2.0
/// Tenants that want, lie, die and are promoted, and agents that end, played over the words of their pages.
/// One seed replays a whole life.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "agent/turns/turns.h"
#include "shared/abi/shared_page.h"
#include "tests/doubles/base/test_seed.h"

namespace firebreak::turns {
namespace {

using std::chrono::milliseconds;

struct Tenant {
  std::string name;
  bool is_alive = false;  ///< it has an active that can compute
  Claim claim{};
  std::uint32_t word = 0;     ///< the HoldWord of its page, which outlives its processes and agents
  Monotonic could_compute{};  ///< when it last did, or wanted nothing, or was dead
};

class World {
 public:
  World(std::uint64_t seed, const char* policy) : random_(seed), policy_(**policy_named(policy)) {
    for (std::size_t i = 0; i < tenants_.size(); ++i) tenants_[i].name = std::string(1, char('a' + i));
    for (Tenant& each : tenants_) each.claim.tenant = each.name;
  }

  void live() {
    pass(milliseconds(random_() % 400));
    Tenant& one = tenants_[random_() % tenants_.size()];
    switch (random_() % 12) {
      case 0:
      case 1:
      case 2:
        want(one);
        break;
      case 3:
        one.claim.units = 0;
        break;
      case 4:
        one.is_alive = false;
        break;
      case 5:
      case 6:
      case 7:
        one.is_alive = true;  // started anew, or promoted: the page is what it was
        break;
      case 8:
        lie(one);
        break;
      case 9:
        end_agent();
        return;
      default:
        start_agent();
        return;
    }
    note_all();
    if (has_agent_) look();
  }

 private:
  static constexpr std::array<std::uint64_t, 4> some_units{1, 20, 1'000,
                                                           std::numeric_limits<std::uint64_t>::max()};

  void want(Tenant& one) {
    one.claim.units = some_units[random_() % some_units.size()];
    one.claim.its_class = random_() % 2 == 0 ? Class::Live : Class::Batch;
    one.claim.unit_cost = milliseconds(random_() % 100);
    one.claim.deadline.reset();
    if (random_() % 2 == 0) one.claim.deadline = now_ + milliseconds(random_() % 20'000);
  }

  void lie(Tenant& one) {
    one.claim = {one.name, Class::Live, some_units.back(), Monotonic::min(), Nanoseconds::max()};
    if (random_() % 3 != 0) return;
    one.word = static_cast<std::uint32_t>(random_());  // of its own page: it holds nobody but itself
    was_overwritten_ = true;
  }

  bool wants(const Tenant& one) const { return one.is_alive && one.claim.units > 0; }
  bool is_held(const Tenant& one) const { return abi::HoldWord::left_ms(one.word, to_ns(now_)) > 0; }

  /// Time passes up to the agent's next look, as often as there is one.
  void pass(Nanoseconds time) {
    const Monotonic until = now_ + time;
    while (has_agent_ && look_at_ && *look_at_ <= until) {
      now_ = *look_at_;
      // The words were to last until now: else somebody would compute who is to wait.
      for (const Tenant& each : tenants_) {
        const bool is_to_wait = wants(each) && state_.waiting.contains(each.name);
        EXPECT_TRUE(!is_to_wait || is_held(each) || was_overwritten_) << each.name;
      }
      look();
    }
    now_ = until;
    note_all();
  }

  void look() {
    std::vector<Claim> claims;
    for (const Tenant& each : tenants_) {
      if (wants(each)) claims.push_back(each.claim);
      if (wants(each) && is_first_look_) claims.back().was_held = is_held(each);
    }
    is_first_look_ = false;
    const auto again = advance(policy_, limits_, state_, claims, now_);
    for (Tenant& each : tenants_) {
      const bool is_to_wait = state_.waiting.contains(each.name);
      each.word = is_to_wait ? abi::HoldWord::until(to_ns(now_), limits_.longest_wait / milliseconds(1)) : 0;
    }
    look_at_ = again ? std::optional(now_ + *again) : std::nullopt;
    was_overwritten_ = false;
    const auto going =
        std::ranges::count_if(tenants_, [&](const Tenant& each) { return wants(each) && !is_held(each); });
    EXPECT_EQ(going, claims.empty() ? 0 : 1);
    note_all();
  }

  /// Nobody starves, with an agent and without.
  void note_all() {
    for (Tenant& each : tenants_) {
      if (!wants(each) || !is_held(each)) each.could_compute = now_;
      if (was_overwritten_) continue;
      EXPECT_LE(now_ - std::max(each.could_compute, changed_at_), limits_.bound(tenants_.size()))
          << each.name;
      const bool is_long_gone = !has_agent_ && now_ - changed_at_ >= limits_.longest_wait;
      EXPECT_FALSE(is_long_gone && is_held(each)) << each.name;
    }
  }

  void end_agent() {
    if (!has_agent_) return;
    has_agent_ = false;
    changed_at_ = now_;
    look_at_.reset();
  }

  void start_agent() {
    if (has_agent_) return;
    has_agent_ = is_first_look_ = true;
    changed_at_ = now_;
    state_ = {};
    look();
  }

  std::mt19937_64 random_;
  const Policy& policy_;
  const Limits limits_{milliseconds(2'000)};
  std::array<Tenant, 5> tenants_;
  Monotonic now_{std::chrono::hours(1'000)};
  bool has_agent_ = false;
  bool is_first_look_ = false;
  bool was_overwritten_ = false;
  Monotonic changed_at_ = now_;  ///< when the agent began or ended
  TurnState state_;
  std::optional<Monotonic> look_at_;
};

class TurnsWorld : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Policies, TurnsWorld, ::testing::Values("priority", "deadline"));

TEST_P(TurnsWorld, SomebodyComputesAndNobodyStarvesIn10000Lives) {
  const std::uint64_t first = test_seed();
  for (std::uint64_t life = 0; life < 10'000 && !HasFailure(); ++life) {
    SCOPED_TRACE("FIREBREAK_TEST_SEED=" + std::to_string(first + life));
    World world(first + life, GetParam());
    for (int i = 0; i < 200; ++i) world.live();
  }
}

}  // namespace
}  // namespace firebreak::turns
