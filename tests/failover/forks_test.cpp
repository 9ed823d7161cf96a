// SPDX-License-Identifier: Apache-2.0
/// An active with a child of fork(): its end is no fence while the child has what was its on the GPU.
#include <signal.h>

#include <algorithm>
#include <iterator>

#include "ground/os/processes.h"
#include "tests/failover/supervised_agent.h"

namespace firebreak::tests {
namespace {

class Forks : public SupervisedAgent {
 protected:
  Forks() { environment_ = {{"FIREBREAK_LOG", "info"}, {"FIREBREAK_SOFTGPU_ORPHANED_WORK_MS", "endless"}}; }
  /// A pair whose active stores for ever, and has a child.
  void start_forking_pair(const std::string& child = "--watch-ms=500") {
    active_ = &start_tenant(tenant, {program("firebreak-forks"), child});
    wait("the active's kernel", [&] { return !word_after(*active_, "storing, child ").empty(); });
    child_ = std::stoi(word_after(*active_, "storing, child "));
    standby_ = &start_tenant(tenant, {program("firebreak-forks")}, {"--standby"});
    wait_for_status(tenant, [](const auto& now) { return now["standby_state"] == "ready"; });
  }
  void kill_active() { send(pid_of(tenant), SIGKILL); }
  void kill_active_without_an_agent() {
    const pid_t active = pid_of(tenant);
    kill_agent_for_a_while();
    send(active, SIGKILL);
    wait_for_end(*active_);
    resume_supervisor();
    wait_for_next_agent();
  }
  static std::string word_after(const Player& player, const std::string& words) {
    for (const std::string& line : player.lines) {
      if (line.starts_with(words)) return line.substr(words.size());
    }
    return {};
  }
  /// Once the standby has been promoted, has looked for stores and has left.
  std::string stores_beside_the_successor() {
    wait_for_end(*standby_);
    return word_after(*standby_, "stores ");
  }
  /// That somebody else is in the way, once more.
  void wait_for_word() {
    ++words_wanted_;
    wait("the word", [&] {
      return std::ranges::count_if(agent_->lines, [](const std::string& line) {
               return line.find("(sleep) still holds the GPU descriptors of the dead active") != line.npos &&
                      line.find("not fenced") != line.npos;
             }) >= words_wanted_;
    });
  }
  void expect_to_wait_for_child() {
    EXPECT_EQ(status_of(tenant)["phase"], "suspecting");
    EXPECT_TRUE(child_lives());
    EXPECT_TRUE(word_after(*standby_, "promoted").empty());
    send(child_, SIGKILL);
    EXPECT_THAT(stores_beside_the_successor(), testing::StartsWith("0 in"));
  }
  bool child_lives() {
    return os::is_alive(kernel_.read_file(os::proc_folder(child_) + "/stat").value_or(""));
  }

  Player* active_ = nullptr;
  Player* standby_ = nullptr;
  pid_t child_ = 0;
  std::ptrdiff_t words_wanted_ = 0;
};

TEST_F(Forks, TheChildOfADeadActiveIsEndedAndNothingLandsBesideTheSuccessor) {
  start_supervised();
  start_forking_pair();
  kill_active();
  EXPECT_THAT(stores_beside_the_successor(), testing::StartsWith("0 in"));
  EXPECT_FALSE(child_lives());
  EXPECT_TRUE(agent_->said("still holds the GPU descriptors of the dead active"));
  EXPECT_TRUE(agent_->said("nobody keeps its GPU descriptors any more"));
}

TEST_F(Forks, SomebodyElseIsWaitedForAndTold) {
  start_supervised();
  start_forking_pair("--stranger");
  kill_active();
  wait_for_word();
  expect_to_wait_for_child();
}

// The next agent has no duplicates of what died before it came.
TEST_F(Forks, TheChildOfAnActiveThatDiedWithoutAnAgentIsEndedToo) {
  start_supervised();
  start_forking_pair();
  kill_active_without_an_agent();
  EXPECT_THAT(stores_beside_the_successor(), testing::StartsWith("0 in"));
  EXPECT_FALSE(child_lives());
}

TEST_F(Forks, SomebodyElseIsWaitedForByTheNextAgentToo) {
  start_supervised();
  start_forking_pair("--stranger");
  kill_active();
  wait_for_word();
  kill_agent();
  wait_for_next_agent();
  wait_for_word();
  expect_to_wait_for_child();
}

// A restart in the middle of a takeover.
TEST_F(Forks, SomebodyElseIsWaitedForAfterAnOrderlyRestartToo) {
  start_supervised();
  start_forking_pair("--stranger");
  kill_active();
  wait_for_word();
  tell_agent_to_end();
  wait_for_next_agent();
  wait_for_word();
  expect_to_wait_for_child();
}

// He was given the descriptors before anybody looked who has them.
TEST_F(Forks, SomebodyElseIsWaitedForWhereTheActiveDiedWithoutAnAgent) {
  start_supervised();
  start_forking_pair("--stranger");
  kill_active_without_an_agent();
  wait_for_word();
  expect_to_wait_for_child();
}

// What its child has, the agent's connection too, hides that it is gone.
TEST_F(Forks, AnActiveThatBecomesAnotherProgramBesideItsChildIsReplaced) {
  start_supervised();
  start_forking_pair();
  send(pid_of(tenant), SIGUSR2);
  EXPECT_THAT(stores_beside_the_successor(), testing::StartsWith("0 in"));
  EXPECT_FALSE(child_lives());
  EXPECT_TRUE(agent_->said("it is its tenant's active no more"));
  EXPECT_TRUE(agent_->said("it is left of a dead process, and keeps its GPU descriptors"))
      << "it ended itself";
}

TEST_F(Forks, NothingHeldChangesNothingOfThat) {
  start_supervised({"--hold-s", "0"});
  start_forking_pair();
  kill_active();
  EXPECT_THAT(stores_beside_the_successor(), testing::StartsWith("0 in"));
  EXPECT_FALSE(child_lives());
}

// As one with data loaders: its output is what it would have been without a fault.
TEST_F(Forks, AWorkingTenantGoesOnWithTheSameOutput) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer's runtime wants to be the first library";
#endif
  start_supervised();
  std::vector<std::string> command = {"env", "LD_PRELOAD=" FIREBREAK_TEST_FORKING};
  std::ranges::move(decode_slowly(), std::back_inserter(command));
  const Player& active = start_tenant(tenant, std::move(command));
  wait_for_status(tenant, [](const auto& now) { return now["phase"] == "serving"; });
  const Player& standby = start_standby();
  wait_for_steps(3);
  kill_active();
  wait_for_end(active);
  wait_for_end(standby);
  EXPECT_EQ(standby.exit_status(), 0);
  EXPECT_TRUE(agent_->said("(firebreak-decod) still holds the GPU descriptors of the dead active"));
  expect_output_as_if_nothing_happened();
}

}  // namespace
}  // namespace firebreak::tests
