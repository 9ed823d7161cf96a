// SPDX-License-Identifier: Apache-2.0
/// An agent with few descriptors: whoever is let in is protected, held and watched, and others are told why
/// they are not.
#include <sys/resource.h>

#include <algorithm>

#include "tests/failover/supervised_agent.h"

namespace firebreak::tests {
namespace {

using testing::HasSubstr;

class Descriptors : public SupervisedAgent {
 protected:
  static constexpr int few = 256;

  Player& start_pair(const std::string& name) {
    return start_tenant(name,
                        {program("firebreak-decode"), "--steps", "100000", "--output", sandbox_.file(name),
                         "--pace-ms", "500"},
                        {"--pair"});
  }
  nlohmann::json status() { return nlohmann::json::parse(command({"status", "--json"}).output); }
  static bool is_held(const nlohmann::json& status, const nlohmann::json& member) {
    return std::ranges::any_of(status["holds"], [&](const nlohmann::json& hold) {
      return hold["pid"] == member["pid"] && hold["state"] == "ready";
    });
  }
  /// Asks again and again: that a tenant is known wakes nobody here.
  void wait_until_it_is_known_or_ends(const std::string& name, const Player& pair) {
    ask_until("tenant " + name, [&] { return pair.actor->ended() || !status_of(name).is_null(); });
  }
  /// With a standby that is ready, both held, and nothing lacking.
  void wait_until_whole(const std::string& name) {
    wait_for_status(name, [&](const nlohmann::json& now) {
      if (now["phase"] != "serving" || now["standby_state"] != "ready") return false;
      const nlohmann::json all = status();
      return is_held(all, now["active"]) && is_held(all, now["standby"]) && now["lacks"].empty();
    });
  }
  void end(const std::string& name) {
    const auto stopped = command({"stop", name, "--grace-ms", "0"});
    EXPECT_TRUE(stopped.status.clean()) << stopped.output;
  }
};

TEST_F(Descriptors, ALowLimitIsRaisedToWhatThereMayBe) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  if (before.rlim_max < 4 * few) GTEST_SKIP() << "this machine allows no more";
  const rlimit low{few, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  start_supervised();
  const auto limit = status()["descriptors"]["limit"].get<std::uint64_t>();
  EXPECT_GE(limit, before.rlim_max);
  Player& shell = start_tenant("shell", {"sh", "-c", "ulimit -n"});
  wait_for_end(shell);
  EXPECT_TRUE(shell.said("256")) << "who is started has what we had: " << testing::PrintToString(shell.lines);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST_F(Descriptors, WhoIsLetInIsWholeAndWhoIsNotIsToldWhy) {
  start_supervised({"--descriptors", std::to_string(few)});
  std::vector<std::string> names;
  Player* refused = nullptr;
  while (refused == nullptr && names.size() < 12) {
    const std::string name = "tenant-" + std::to_string(names.size());
    Player& pair = start_pair(name);
    wait_until_it_is_known_or_ends(name, pair);
    if (pair.actor->ended()) {
      refused = &pair;
    } else {
      wait_until_whole(name);
      names.push_back(name);
    }
  }
  ASSERT_NE(refused, nullptr) << "so few descriptors are not enough for 12 pairs";
  wait_for_end(*refused);
  EXPECT_THAT(refused->actor->record().last_words, HasSubstr("no room for a process of tenant"));
  EXPECT_GE(names.size(), 5u);
  for (const std::string& name : names) wait_until_whole(name);
  end(names.back());
  start_pair("another");
  wait_until_whole("another");
  names.back() = "another";
  for (const std::string& name : names) end(name);
}

/// A tenant's own, each of whose allocations takes one on the software GPU.
class OfATenant : public Descriptors {
 protected:
  Player& start_with(const char* limit, int allocations) {
    return start_tenant(tenant, {"sh", "-c", std::string("ulimit ") + limit + R"(; exec "$@")", "sh",
                                 program("firebreak-decode"), "--steps", "20", "--output",
                                 sandbox_.file("out"), "--more-memory", std::to_string(allocations)});
  }
};

TEST_F(OfATenant, WithALowLimitItsAllocationsRaiseIt) {
  start_supervised();
  Player& active = start_with("-Sn 128", few);
  wait_for_end(active);
  EXPECT_TRUE(active.actor->record().exit->clean()) << active.actor->record().last_words;
}

TEST_F(OfATenant, WhereItMayNotBeRaisedIsToldWhatIsMissing) {
  start_supervised();
  Player& active = start_with("-n 128", few);
  wait_for_end(active);
  EXPECT_FALSE(active.actor->record().exit->clean());
  EXPECT_THAT(active.actor->record().last_words, HasSubstr("of which this process may have 128 in all"));
}

}  // namespace
}  // namespace firebreak::tests
