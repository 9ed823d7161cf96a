// SPDX-License-Identifier: Apache-2.0
/// Tenants in C on one piece of memory, of whom each is killed, and the agent.
#include <signal.h>

#include "tests/failover/supervised_agent.h"

namespace firebreak::tests {
namespace {

using Words = std::vector<std::string>;

constexpr const char* at_first = "FB_OK 540000000000";

class Sharing : public SupervisedAgent {
 protected:
  Player& start_sharer(const std::string& name, const Words& words, Words run_arguments = {}) {
    Words command = {FIREBREAK_TEST_SHARER};
    command.insert(command.end(), words.begin(), words.end());
    return start_tenant(name, std::move(command), std::move(run_arguments));
  }
  void wait_for_words(Player& player, const std::string& words) {
    wait(words, [&] { return player.said(words) || player.actor->ended(); });
    EXPECT_TRUE(player.said(words)) << testing::PrintToString(player.lines);
  }
  /// Has written 42 and shared it, and waits.
  Player& start_maker() {
    Player& maker =
        start_sharer("maker", {"make", "backbone", "4194304", "write", "42", "share", "wait", "leave"});
    wait_for_words(maker, "waits");
    EXPECT_TRUE(maker.said("share FB_OK")) << testing::PrintToString(maker.lines);
    return maker;
  }
  Player& start_reader(const std::string& name) {
    Player& reader =
        start_sharer(name, {"map", "maker", "backbone", "-1", "read", "wait", "read", "wait", "leave"});
    wait_for_words(reader, "waits");
    expect_has_read(reader, 1);
    return reader;
  }
  static void expect_has_read(const Player& reader, std::ptrdiff_t times) {
    EXPECT_TRUE(reader.said(std::string("map ") + at_first)) << testing::PrintToString(reader.lines);
    EXPECT_EQ(std::ranges::count(reader.lines, "read 0 42"), times) << testing::PrintToString(reader.lines);
  }
  /// Has it read once more, whatever has happened since.
  void expect_reads_on(Player& reader) {
    reader.actor->tell("go");
    wait("its second look", [&] { return std::ranges::count(reader.lines, "waits") == 2; });
    expect_has_read(reader, 2);
  }
  void expect_leaves(Player& player) {
    player.actor->tell("go");
    wait_for_end(player);
    EXPECT_EQ(player.exit_status(), 0) << testing::PrintToString(player.lines);
  }
  /// Returns when the agent knows it, too.
  void kill(const std::string& name, Player& player) {
    const pid_t pid = pid_of(name);
    send(pid, SIGKILL);
    wait_for_end(player);
    for (;;) {
      const nlohmann::json now = status_of(name);
      if (now.is_null() || !now["active"].is_object() || now["active"]["pid"] != pid) return;
      while (stage_->loop().run_once(Milliseconds(0))) {
      }
    }
  }
  nlohmann::json shared() {
    return nlohmann::json::parse(command({"status", "--json"}).output, nullptr, false)["shared"];
  }
  void wait_for_tenants(const Words& wanted) {
    while (shared().size() != 1 || shared()[0]["tenants"] != nlohmann::json(wanted)) {
      while (stage_->loop().run_once(Milliseconds(0))) {
      }
    }
  }
  void wait_until_gone() {
    while (!shared().empty()) {
      while (stage_->loop().run_once(Milliseconds(0))) {
      }
    }
  }
};

TEST_F(Sharing, TenantsReadOnePieceOfMemoryAtOneAddress) {
  start_supervised();
  Player& early = start_sharer("early", {"map", "maker", "backbone", "-1", "read", "leave"});
  Player& maker = start_maker();
  EXPECT_TRUE(maker.said(std::string("make ") + at_first)) << testing::PrintToString(maker.lines);
  Player& reader = start_reader("reader");
  wait_for_end(early);
  expect_has_read(early, 1);
  wait_for_tenants({"maker", "reader"});
  EXPECT_EQ(shared()[0]["bytes"], 4 << 20);
  EXPECT_THAT(command({"status"}).output, testing::ContainsRegex("maker +4 MiB +1 +yes +maker,reader"));
  expect_leaves(maker);
  expect_reads_on(reader);
  expect_leaves(reader);
}

TEST_F(Sharing, WhatIsBadSaysSoAndTheTenantGoesOn) {
  start_supervised();
  Player& one = start_sharer(
      "one", {"share", "map", "nobody", "backbone", "10", "make", "a",   "1", "share", "share", "make", "b",
              "1",     "map", "one",    "a",        "0",  "map",  "one", "b", "0",     "wait",  "leave"});
  wait_for_words(one, "waits");
  EXPECT_THAT(
      one.lines,
      testing::ElementsAre(
          testing::StartsWith("share FB_ERROR_INVALID_ARGUMENT 0: tenant 'one' has made no memory to share"),
          testing::StartsWith("map FB_ERROR_TIMEOUT 0: no tenant 'nobody' shares its memory"),
          "make FB_OK 540000000000", "share FB_OK 540000000000",
          testing::StartsWith("share FB_ERROR_INVALID_ARGUMENT"),
          testing::StartsWith("make FB_ERROR_INVALID_ARGUMENT"), "map FB_OK 540000000000",
          testing::StartsWith("map FB_ERROR_INVALID_ARGUMENT"), "waits"));
  expect_leaves(one);
}

TEST_F(Sharing, AMakerThatIsKilledBeforeItHasSharedBeginsAnew) {
  start_supervised();
  Player& maker = start_sharer("maker", {"make", "backbone", "4194304", "write", "7", "wait"});
  wait_for_words(maker, "waits");
  Player& reader = start_sharer("reader", {"map", "maker", "backbone", "-1", "read", "wait", "leave"});
  wait_until_adopted("reader");
  kill("maker", maker);
  EXPECT_FALSE(reader.said("map"));
  EXPECT_EQ(shared()[0]["is_shared"], false);
  Player& next = start_maker();  // writes over what is there
  EXPECT_TRUE(next.said(std::string("make ") + at_first));
  wait_for_words(reader, "waits");
  expect_has_read(reader, 1);
  expect_leaves(next);
  expect_leaves(reader);
}

TEST_F(Sharing, AMakerThatIsKilledAfterItHasSharedTakesNothingAlong) {
  start_supervised();
  Player& maker = start_maker();
  Player& reader = start_reader("reader");
  kill("maker", maker);
  expect_reads_on(reader);
  Player& late = start_reader("late");
  wait_for_tenants({"late", "reader"});
  Player& again = start_sharer("maker", {"map", "maker", "backbone", "0", "read", "share", "leave"});
  wait_for_end(again);
  expect_has_read(again, 1);
  EXPECT_TRUE(again.said("share FB_ERROR_INVALID_ARGUMENT")) << "it has been shared";
  expect_leaves(reader);
  expect_reads_on(late);
  expect_leaves(late);
}

/// The standby has it before it is ready.
TEST_F(Sharing, AReaderThatIsKilledIsFollowedByItsStandbyAndTheOthersReadOn) {
  start_supervised();
  Player& maker = start_maker();
  Player& other = start_reader("other");
  Player& active = start_sharer("reader", {"map", "maker", "backbone", "-1", "commit", "wait"});
  wait_for_words(active, "waits");
  Player& standby =
      start_sharer("reader", {"map", "maker", "backbone", "-1", "ready", "promoted", "read", "wait", "leave"},
                   {"--standby"});
  wait_for_status("reader", [](const auto& now) { return now["standby_state"] == "ready"; });
  kill("reader", active);
  wait_for_words(standby, "waits");
  EXPECT_TRUE(standby.said("promoted FB_OK")) << testing::PrintToString(standby.lines);
  expect_has_read(standby, 1);
  kill("reader", standby);
  expect_reads_on(other);
  expect_leaves(other);
  expect_leaves(maker);
}

TEST_F(Sharing, TheAgentIsKilledAndEverybodyHasWhatItHad) {
  start_supervised();
  Player& reader =
      start_sharer("reader", {"map", "maker", "backbone", "-1", "read", "wait", "read", "wait", "leave"});
  wait_until_adopted("reader");
  Player& maker =
      start_sharer("maker", {"make", "backbone", "4194304", "write", "42", "wait", "share", "wait", "leave"});
  wait_for_words(maker, "waits");
  kill_agent();  // somebody waits for what is made, and not shared yet
  wait_for_next_agent();
  maker.actor->tell("go");
  wait_for_words(maker, "share FB_OK");
  wait_for_words(reader, "waits");
  expect_has_read(reader, 1);
  expect_leaves(maker);
  kill_agent();
  wait_for_next_agent();
  wait_for_tenants({"reader"});
  expect_reads_on(reader);
  Player& late = start_reader("late");
  expect_leaves(reader);
  expect_reads_on(late);
  expect_leaves(late);
}

TEST_F(Sharing, ItGoesSomeTimeAfterTheLastTenantThatHadIt) {
  start_supervised({"--lease-s", "1"});
  Player& maker = start_maker();
  Player& reader = start_reader("reader");
  expect_leaves(maker);
  kill("reader", reader);
  wait_until_gone();
  Player& late = start_sharer("late", {"map", "maker", "backbone", "0", "leave"});
  wait_for_end(late);
  EXPECT_TRUE(late.said("map FB_ERROR_TIMEOUT")) << testing::PrintToString(late.lines);
}

TEST_F(Sharing, AMakerIsStoppedOnlyByForceWhileOthersHaveIt) {
  start_supervised();
  Player& maker = start_maker();
  Player& reader = start_reader("reader");
  const auto refused = command({"stop", "maker"});
  EXPECT_EQ(refused.status.exit_code, 1);
  EXPECT_THAT(refused.output, testing::HasSubstr("others map what tenant 'maker' shares: reader"));
  EXPECT_EQ(command({"stop", "maker", "--force"}).status.exit_code, 0);
  wait_for_end(maker);
  expect_reads_on(reader);
  expect_leaves(reader);
}

}  // namespace
}  // namespace firebreak::tests
