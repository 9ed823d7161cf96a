// SPDX-License-Identifier: Apache-2.0
// Turns as the agent gives them: its words on tenants' pages, for what tenants say there.
#include <nlohmann/json.hpp>

#include <limits>

#include "tests/doubles/agent/agent_test_support.h"

namespace firebreak::agent {
namespace {

struct AgentTurns : AgentTest {
  AgentTurns() { start("priority"); }

  void start(const char* policy) {
    agent.reset();
    loop = std::move(os::EventLoop::create(&clock).value());
    AgentOptions options{path, {{"LD_LIBRARY_PATH", "/soft"}}};
    options.turns = turns::policy_named(policy).value();
    agent = start_agent(options);
  }
  static abi::TurnPlace& place(const os::Mapping& page) { return page.as<abi::SharedPage>()->turn; }
  bool is_held(const os::Mapping& page) const {
    return abi::HoldWord::left_ms(place(page).hold, to_ns(clock.now())) > 0;
  }
  void want(Peer& peer, const os::Mapping& page, std::uint64_t units, bool is_live = false) {
    place(page).is_live = is_live ? 1 : 0;
    place(page).taken = 1;
    place(page).units = units;
    peer.send(abi::TurnWanted{});
    settle();
  }
  /// The agent looks whenever it wanted to.
  void pass(Nanoseconds time) {
    for (; time > Nanoseconds(0); time -= Milliseconds(10)) {
      clock.advance(Milliseconds(10));
      settle();
    }
  }
  nlohmann::json turn_of(const std::string& tenant) {
    const auto status = nlohmann::json::parse(agent->status_json());
    for (const auto& each : status["tenants"]) {
      if (each["name"] == tenant) return each["turn"];
    }
    return nullptr;
  }
  void die(Peer& peer) {
    peer.end(kernel);
    detectors.callbacks.on_exit(peer.pid());
    settle();
  }
};

TEST_F(AgentTurns, TheVideoWaitsWhileAnImageIsThere) {
  Peer video = peer(), image = peer();
  const os::Mapping its = join(video, "video", abi::Role::Active);
  const os::Mapping other = join(image, "image", abi::Role::Active);
  EXPECT_EQ(place(its).heard, 1u);
  want(video, its, 100);
  EXPECT_FALSE(is_held(its));
  want(image, other, 20, true);
  EXPECT_TRUE(is_held(its));
  EXPECT_FALSE(is_held(other));
  pass(Milliseconds(120));
  EXPECT_EQ(turn_of("video")["state"], "waits");
  EXPECT_EQ(turn_of("video")["waits_ms"], 120);
  EXPECT_EQ(turn_of("image"), nlohmann::json({{"state", "goes"}, {"class", "live"}, {"waits_ms", 0}}));
  want(image, other, 0);
  EXPECT_EQ(place(its).hold, 0u);
  EXPECT_EQ(turn_of("image")["state"], "idle");
}

// MPS names a client some time after it has come: on a busy machine after its first step.
TEST_F(AgentTurns, WhoIsNamedByMpsOnlyWhenItWantsToComputeTakesPartFromThenOn) {
  Peer video = peer(), image = peer();
  const os::Mapping its = join(video, "video", abi::Role::Active);
  const os::Mapping other = join_unnamed(image, "image", abi::Role::Active);
  want(video, its, 100);
  want(image, other, 20, true);
  EXPECT_FALSE(is_held(its)) << "whoever is nowhere takes nobody's time";
  be_named(image.pid());
  settle();
  EXPECT_TRUE(is_held(its));
  EXPECT_FALSE(is_held(other));
}

TEST_F(AgentTurns, WhoNeverAsksNeverWaits) {
  Peer old = peer(), image = peer();
  const os::Mapping its = join(old, "old", abi::Role::Active);
  const os::Mapping other = join(image, "image", abi::Role::Active);
  want(image, other, 20, true);
  EXPECT_EQ(place(its).hold, 0u);
  EXPECT_EQ(turn_of("old")["state"], "never asks");
}

TEST_F(AgentTurns, WithoutTurnsNobodyWaitsOrTells) {
  start("free");
  Peer video = peer(), image = peer();
  const os::Mapping its = join(video, "video", abi::Role::Active);
  const os::Mapping other = join(image, "image", abi::Role::Active);
  EXPECT_EQ(place(its).heard, 0u);
  want(video, its, 100);
  want(image, other, 20, true);
  EXPECT_EQ(place(its).hold, 0u);
  EXPECT_EQ(place(other).hold, 0u);
}

TEST_F(AgentTurns, TenantsOfAnotherGpuDoNotWait) {
  domains.gpus = {{"a", "GPU-1"}, {"b", "GPU-2"}};
  Peer video = peer(), image = peer();
  const os::Mapping its = join(video, "video", abi::Role::Active);
  const os::Mapping other = join(image, "image", abi::Role::Active);
  ASSERT_NE(detectors.targets[video.pid()].domain, detectors.targets[image.pid()].domain);
  want(video, its, 100);
  want(image, other, 20, true);
  EXPECT_FALSE(is_held(its));
  EXPECT_FALSE(is_held(other));
}

// An agent that ends says nothing any more.
TEST_F(AgentTurns, AHoldLastsWhileTheAgentLivesAndNotMuchLonger) {
  Peer video = peer(), image = peer();
  const os::Mapping its = join(video, "video", abi::Role::Active);
  const os::Mapping other = join(image, "image", abi::Role::Active);
  want(video, its, 100);
  want(image, other, 20, true);
  for (int i = 0; i < 190; ++i) {
    ASSERT_TRUE(is_held(its));
    pass(Milliseconds(10));
  }
  agent.reset();
  EXPECT_TRUE(is_held(its));
  clock.advance(AgentOptions{}.turn_max);
  EXPECT_FALSE(is_held(its));
}

TEST_F(AgentTurns, WhoWantsForEverDoesNotStarveTheOther) {
  Peer video = peer(), image = peer();
  const os::Mapping its = join(video, "video", abi::Role::Active);
  const os::Mapping other = join(image, "image", abi::Role::Active);
  want(image, other, std::numeric_limits<std::uint64_t>::max(), true);
  want(video, its, 100);
  ASSERT_TRUE(is_held(its));
  pass(turns::Limits{}.bound(2));
  int turns = 0;
  for (int i = 0; i < 1'100; ++i) {
    pass(Milliseconds(10));
    turns += is_held(its) ? 0 : 1;
  }
  EXPECT_GE(turns, 80);
  EXPECT_LE(turns, 120);
}

TEST_F(AgentTurns, WhoDiesLeavesItsTurnToTheOther) {
  Peer video = peer(), image = peer();
  const os::Mapping its = join(video, "video", abi::Role::Active);
  const os::Mapping other = join(image, "image", abi::Role::Active);
  want(video, its, 100);
  want(image, other, 20, true);
  ASSERT_TRUE(is_held(its));
  die(image);
  EXPECT_EQ(place(its).hold, 0u);
}

TEST_F(AgentTurns, APromotedStandbyHasTheTurnOfItsPredecessor) {
  ProtectedTenant image = pair("image");
  Peer video = peer();
  const os::Mapping its = join(video, "video", abi::Role::Active);
  want(video, its, 100);
  want(image.active, image.page, 20, true);
  die(image.active);
  ASSERT_EQ(word(image.page).epoch, 1u);
  ask(image.standby, abi::Resumed{0});
  EXPECT_TRUE(is_held(its));
  EXPECT_FALSE(is_held(image.page));
  EXPECT_EQ(turn_of("image")["state"], "goes");
}

TEST_F(AgentTurns, UntrueWordsHarmNobodyElse) {
  start("deadline");
  Peer liar = peer(), honest = peer();
  const os::Mapping of_liar = join(liar, "liar", abi::Role::Active);
  const os::Mapping of_honest = join(honest, "honest", abi::Role::Active);
  place(of_liar).deadline_ns = std::numeric_limits<std::int64_t>::min();
  place(of_liar).unit_ns = std::numeric_limits<std::int64_t>::max();
  want(liar, of_liar, std::numeric_limits<std::uint64_t>::max());
  want(honest, of_honest, 20);
  EXPECT_TRUE(is_held(of_honest));
  place(of_honest).hold = 0;
  place(of_liar).hold = abi::HoldWord::until(to_ns(clock.now()), abi::HoldWord::longest_ms);
  pass(turns::Limits{}.turn());
  EXPECT_TRUE(is_held(of_honest));
  EXPECT_FALSE(is_held(of_liar));
  pass(turns::Limits{}.longest_wait - turns::Limits{}.turn());
  EXPECT_FALSE(is_held(of_honest));
  EXPECT_TRUE(is_held(of_liar));
}

TEST_F(AgentTurns, WhomAnAgentBeforeHadWaitIsNext) {
  Peer video = peer(), image = peer();
  const os::Mapping its = join(video, "video", abi::Role::Active);
  const os::Mapping other = join(image, "image", abi::Role::Active);
  want(video, its, 100);
  want(image, other, 20, true);
  ASSERT_TRUE(is_held(its));
  agent->hand_over();
  start("priority");
  settle();
  EXPECT_FALSE(is_held(its));
  EXPECT_TRUE(is_held(other));
  pass(turns::Limits{}.turn());
  EXPECT_TRUE(is_held(its));
  EXPECT_FALSE(is_held(other));
}

TEST_F(AgentTurns, AnAgentWithoutTurnsLetsGoWhoWaitsByTheWordOfOneWithThem) {
  Peer video = peer(), image = peer();
  const os::Mapping its = join(video, "video", abi::Role::Active);
  const os::Mapping other = join(image, "image", abi::Role::Active);
  want(video, its, 100);
  want(image, other, 20, true);
  agent->hand_over();
  start("free");
  EXPECT_EQ(place(its).hold, 0u);
}

}  // namespace
}  // namespace firebreak::agent
