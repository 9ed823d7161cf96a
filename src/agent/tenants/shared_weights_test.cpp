// SPDX-License-Identifier: Apache-2.0
/// Lives of shared memory against a model: nobody has memory that is gone, and nothing stays that nobody has.
/// One seed replays a whole life.
#include "agent/tenants/shared_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <utility>

#include "agent/tenants/kept_state.h"
#include "ground/base/units.h"
#include "tests/doubles/base/test_seed.h"

namespace firebreak::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Milliseconds lease{1'000};
const WeightsName of_maker{1000, "maker"};

vault::Entry piece(const std::string& name, std::uint64_t size_bytes = 2 * mib) {
  return {name, 0, size_bytes, abi::Memory::Shared, os::Fd(), true};
}

struct SharedWeightsTest : testing::Test {
  SharedWeights weights{10 * mib, lease};
  Monotonic now{std::chrono::seconds(5)};

  std::uint64_t add(const WeightsName& name, const std::string& its, std::uint64_t size_bytes = 2 * mib) {
    const auto address = weights.add(name, piece(its, size_bytes), 0);
    EXPECT_TRUE(address);
    return address.value_or(0);
  }
  ErrorCode refusal(const std::string& its, const std::string& tenant) {
    const auto given = weights.give(of_maker, its, tenant);
    return given ? ErrorCode::Internal : given.error().code;
  }
};

TEST_F(SharedWeightsTest, EachPieceHasAddressesOfItsOwnAndThoseOfTheGoneAreUsedAgain) {
  constexpr std::uint64_t first = SharedWeights::first_address;
  EXPECT_EQ(add(of_maker, "a", 4 * mib), first);
  EXPECT_EQ(add({1001, "maker"}, "a"), first + 4 * mib);
  EXPECT_EQ(add(of_maker, "b"), first + 6 * mib);
  weights.erase(of_maker);
  EXPECT_EQ(add({1001, "other"}, "a", 6 * mib), first + 6 * mib) << "in no gap that is too small";
  EXPECT_EQ(add({1001, "other"}, "b", 4 * mib), first);
}

TEST_F(SharedWeightsTest, ThereAreSoManyAddressesAndNoMore) {
  SharedWeights all(0, lease);
  ASSERT_TRUE(all.add(of_maker, piece("a"), 0));
  const auto too_large = all.add(of_maker, piece("b", SharedWeights::address_bytes), 0);
  EXPECT_EQ(too_large.error().code, ErrorCode::ResourceExhausted);
  EXPECT_TRUE(all.add(of_maker, piece("b", SharedWeights::address_bytes - 2 * mib), 0));
}

TEST_F(SharedWeightsTest, WhatIsPutAwayCostsNoDescriptorAndWhatIsLostIsGone) {
  vault::Entry its = piece("a");
  its.is_put_away = false;
  its.descriptor = os::Fd(::dup(0));
  ASSERT_TRUE(weights.add(of_maker, std::move(its), 0));
  EXPECT_EQ(weights.descriptors_here(), 1u);
  weights.put_away(of_maker, "a");
  EXPECT_EQ(weights.descriptors_here(), 0u);
  add(of_maker, "b");
  weights.forget(of_maker, "a");
  EXPECT_EQ(weights.find(of_maker, "a"), nullptr);
  weights.forget(of_maker, "b");
  EXPECT_EQ(weights.find(of_maker), nullptr);
}

TEST_F(SharedWeightsTest, TheNextEndIsTheFirstOfAll) {
  for (const char* maker : {"a", "b", "c"}) {
    add({1000, maker}, "a");
    ASSERT_TRUE(weights.share({1000, maker}));
  }
  weights.leave("b", now);
  weights.leave("a", now + Milliseconds(7));
  weights.leave("c", now + Milliseconds(9));
  EXPECT_EQ(weights.next_end(), now + lease);
  weights.erase({1000, "b"});
  EXPECT_EQ(weights.next_end(), now + Milliseconds(7) + lease);
}

TEST_F(SharedWeightsTest, ItIsItsMakersAloneUntilItIsShared) {
  EXPECT_EQ(weights.share(of_maker).error().code, ErrorCode::InvalidArgument) << "nothing was made";
  add(of_maker, "a");
  EXPECT_EQ(refusal("a", "reader"), ErrorCode::NotFound);
  EXPECT_TRUE(weights.give(of_maker, "a", "maker")) << "its standby";
  ASSERT_TRUE(weights.share(of_maker));
  const auto given = weights.give(of_maker, "a", "reader");
  ASSERT_TRUE(given);
  EXPECT_EQ((*given)->address, SharedWeights::first_address);
  EXPECT_EQ(refusal("b", "reader"), ErrorCode::InvalidArgument);
  EXPECT_THAT(weights.find(of_maker)->tenants, ElementsAre("maker", "reader"));
}

TEST_F(SharedWeightsTest, OfAnotherUserNothingIsKnown) {
  add(of_maker, "a");
  ASSERT_TRUE(weights.share(of_maker));
  const auto given = weights.give({1001, "maker"}, "a", "reader");
  ASSERT_FALSE(given);
  EXPECT_EQ(given.error().message,
            weights.give({1001, "nobody"}, "a", "reader").error().message.replace(8, 6, "maker"));
}

TEST_F(SharedWeightsTest, SharingIsOnceAndNothingIsAddedAfter) {
  add(of_maker, "a");
  ASSERT_TRUE(weights.share(of_maker));
  EXPECT_EQ(weights.share(of_maker).error().code, ErrorCode::InvalidArgument);
  EXPECT_EQ(weights.add(of_maker, piece("b"), 0).error().code, ErrorCode::InvalidArgument);
  EXPECT_EQ(weights.find(of_maker, "b"), nullptr);
}

TEST_F(SharedWeightsTest, TheQuotaCountsWhatTheMakerHasElsewhere) {
  EXPECT_FALSE(weights.add(of_maker, piece("a", 4 * mib), 8 * mib));
  EXPECT_EQ(weights.find(of_maker), nullptr) << "nothing is left of what was refused";
  EXPECT_TRUE(weights.add(of_maker, piece("a", 4 * mib), 6 * mib));
  const auto more = weights.add(of_maker, piece("b"), 6 * mib);
  EXPECT_EQ(more.error().code, ErrorCode::ResourceExhausted);
  EXPECT_THAT(more.error().message, HasSubstr("10 of 10 MiB are used"));
}

TEST_F(SharedWeightsTest, ItLivesForTheLeaseAfterTheLastTenantAndForeverWithOne) {
  add(of_maker, "a");
  ASSERT_TRUE(weights.share(of_maker));
  ASSERT_TRUE(weights.give(of_maker, "a", "reader"));
  weights.leave("maker", now);
  EXPECT_EQ(weights.next_end(), std::nullopt);
  weights.leave("reader", now);
  EXPECT_EQ(weights.next_end(), now + lease);
  EXPECT_THAT(weights.ended(now + lease - Milliseconds(1)), IsEmpty());
  EXPECT_THAT(weights.ended(now + lease), ElementsAre(of_maker));
  ASSERT_TRUE(weights.give(of_maker, "a", "another"));
  EXPECT_THAT(weights.ended(now + lease), IsEmpty()) << "somebody has taken it";
  weights.leave("reader", now + lease);
  EXPECT_EQ(weights.next_end(), std::nullopt) << "who has left before leaves nothing";
}

/// The agent's acts and what they have to come to, told once more in another way.
class World {
 public:
  explicit World(std::uint64_t seed) : random_(seed) {}

  void live() {
    Tenant& one = tenants_[pick(tenants_.size())];
    switch (pick(14)) {
      case 0:
      case 1:
        if (!one.is_there) one = {one.name, uid_t(1000 + pick(2)), true, true};
        one.has_process = true;
        break;
      case 2:
      case 3:
      case 4:
        make(one);
        break;
      case 5:
        share(one);
        break;
      case 6:
      case 7:
      case 8:
        map(one);
        break;
      case 9:
      case 10:
        end(one);
        break;
      case 11:
        forget(one);
        break;
      case 12:
        now_ += Milliseconds(pick(600));
        for (const WeightsName& name : weights_.ended(now_)) weights_.erase(name);
        break;
      default:
        restart();
    }
    check();
  }

 private:
  struct Tenant {
    std::string name;
    uid_t user = 0;
    bool is_there = false;
    bool has_process = false;
  };
  /// Memory that a tenant's processes have mapped.
  struct Mapped {
    std::string tenant;
    WeightsName of;
    std::string piece;
    std::uint64_t address = 0;
    std::uint64_t size_bytes = 0;
  };

  std::size_t pick(std::size_t count) { return random_() % count; }
  std::string some_piece() { return std::string(1, char('a' + pick(4))); }
  WeightsName some_of(const Tenant& one) {
    return {pick(8) == 0 ? one.user ^ 1 : one.user, tenants_[pick(tenants_.size())].name};
  }
  bool has_made(const WeightsName& name) const { return made_.contains(name); }
  std::uint64_t bytes_of(const WeightsName& name) const {
    std::uint64_t bytes = 0;
    if (has_made(name)) {
      for (const auto& [its, size_bytes] : made_.at(name)) bytes += size_bytes;
    }
    return bytes;
  }

  void make(const Tenant& one) {
    if (!one.has_process) return;
    const WeightsName name{one.user, one.name};
    const std::string its = some_piece();
    const std::uint64_t size_bytes = (1 + pick(4)) * 2 * mib;
    const std::uint64_t elsewhere = pick(3) * 2 * mib;
    const bool is_new = !has_made(name) || !made_.at(name).contains(its);
    const bool has_room = bytes_of(name) + elsewhere + size_bytes <= quota;
    const auto address = weights_.add(name, piece(its, size_bytes), elsewhere);
    ASSERT_EQ(address.has_value(), is_new && has_room && !shared_.contains(name));
    if (!address) return;
    for (const Mapped& each : mapped_) {
      ASSERT_TRUE(*address >= each.address + each.size_bytes || each.address >= *address + size_bytes)
          << "somebody else's memory lies there";
    }
    made_[name][its] = size_bytes;
    having_.emplace(name, one.name);
    mapped_.push_back({one.name, name, its, *address, size_bytes});
  }
  void share(const Tenant& one) {
    if (!one.has_process) return;
    const WeightsName name{one.user, one.name};
    const bool is_to_be = has_made(name) && !shared_.contains(name);
    ASSERT_EQ(weights_.share(name).has_value(), is_to_be);
    if (!is_to_be) return;
    shared_.insert(name);
    having_.emplace(name, one.name);
  }
  void map(const Tenant& one) {
    if (!one.has_process) return;
    const WeightsName name = some_of(one);
    if (name.user != one.user) return;
    const std::string its = some_piece();
    const auto given = weights_.give(name, its, one.name);
    const bool is_for_it = shared_.contains(name) || (has_made(name) && name.owner == one.name);
    ASSERT_EQ(given.has_value(), is_for_it && made_.at(name).contains(its));
    if (!given) {
      ASSERT_EQ(given.error().code, is_for_it ? ErrorCode::InvalidArgument : ErrorCode::NotFound);
      return;
    }
    having_.emplace(name, one.name);
    mapped_.push_back({one.name, name, its, (*given)->address, (*given)->size_bytes});
  }
  void end(Tenant& one) {
    if (!one.has_process) return;
    one.has_process = false;
    std::erase_if(mapped_, [&](const Mapped& each) { return each.tenant == one.name; });
    for (const auto& [name, tenant] : having_) {
      if (tenant == one.name) left_[name] = now_;
    }
    std::erase_if(having_, [&](const auto& each) { return each.second == one.name; });
    weights_.leave(one.name, now_);
  }
  void forget(Tenant& one) {
    if (!one.is_there || one.has_process) return;
    one.is_there = false;
    const WeightsName name{one.user, one.name};
    if (has_made(name) && !shared_.contains(name)) {
      weights_.erase(name);
      made_.erase(name);
    }
  }
  /// The next agent knows what was written down.
  void restart() {
    SharedWeights next(quota, lease);
    for (const auto& [name, group] : weights_.all()) {
      KeptWeightsText text;
      const auto kept = decode_weights(text.update(name, group).value_or(""));
      ASSERT_TRUE(kept && kept->name == name);
      SharedWeights::Group restored{vault::Vault(quota), kept->is_shared, kept->tenants};
      for (const KeptAllocation& each : kept->pieces) {
        ASSERT_TRUE(
            restored.pieces.add({each.name, each.address, each.size_bytes, each.memory, os::Fd(), true}));
      }
      next.restore(name, std::move(restored), now_);
      if (group.nobody_since) left_[name] = now_;
    }
    weights_ = std::move(next);
  }

  void check() {
    for (const Mapped& each : mapped_) {
      const vault::Entry* const found = weights_.find(each.of, each.piece);
      ASSERT_NE(found, nullptr) << each.tenant << " has memory that is gone";
      ASSERT_EQ(found->address, each.address);
    }
    for (const auto& [name, group] : weights_.all()) {
      std::set<std::string> having;
      for (const auto& [its, tenant] : having_) {
        if (its == name) having.insert(tenant);
      }
      ASSERT_EQ(group.tenants, having);
      ASSERT_EQ(group.is_shared, shared_.contains(name));
      ASSERT_EQ(group.pieces.total_bytes(), bytes_of(name));
      if (!having.empty()) continue;
      const bool is_its_makers = std::ranges::any_of(tenants_, [&, its = name](const Tenant& each) {
        return each.is_there && WeightsName{each.user, each.name} == its;
      });
      ASSERT_TRUE(group.is_shared ? group.nobody_since == left_.at(name) : is_its_makers)
          << "nobody has what " << name.owner << " made";
    }
    // The model forgets what has ended, which has its own time.
    for (auto each = made_.begin(); each != made_.end();) {
      if (weights_.find(each->first) != nullptr) {
        ++each;
        continue;
      }
      ASSERT_TRUE(shared_.contains(each->first));
      ASSERT_GE(now_ - left_.at(each->first), lease) << "it ended before its time";
      shared_.erase(each->first);
      each = made_.erase(each);
    }
    const auto next = weights_.next_end();
    ASSERT_TRUE(!next || *next + lease > now_);
  }

  static constexpr std::uint64_t quota = 20 * mib;
  std::mt19937_64 random_;
  SharedWeights weights_{quota, lease};
  Monotonic now_{std::chrono::seconds(1)};
  std::array<Tenant, 4> tenants_{{{"one"}, {"two"}, {"three"}, {"four"}}};
  std::vector<Mapped> mapped_;
  std::map<WeightsName, std::map<std::string, std::uint64_t>> made_;
  std::set<WeightsName> shared_;
  std::set<std::pair<WeightsName, std::string>> having_;
  std::map<WeightsName, Monotonic> left_;  ///< the last end of a tenant that had it
};

TEST(SharedWeightsWorld, NobodyHasMemoryThatIsGoneAndNothingStaysThatNobodyHas) {
  const std::uint64_t first = test_seed();
  for (std::uint64_t life = 0; life < 10'000 && !testing::Test::HasFailure(); ++life) {
    SCOPED_TRACE("FIREBREAK_TEST_SEED=" + std::to_string(first + life));
    World world(first + life);
    for (int i = 0; i < 100 && !testing::Test::HasFatalFailure(); ++i) world.live();
  }
}

}  // namespace
}  // namespace firebreak::agent
