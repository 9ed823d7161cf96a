// SPDX-License-Identifier: Apache-2.0
/// `firebreak run --pair`: whoever dies has a successor.
#include <signal.h>

#include <algorithm>
#include <iterator>

#include "tests/failover/supervised_agent.h"

namespace firebreak::tests {
namespace {

class RunPair : public SupervisedAgent {
 protected:
  Player& start_pair(std::vector<std::string> command) { return start_pair({}, std::move(command)); }
  Player& start_pair(std::vector<std::string> run_arguments, std::vector<std::string> command) {
    run_arguments.emplace_back("--pair");
    pair_ = &start_tenant(tenant, std::move(command), std::move(run_arguments));
    return *pair_;
  }
  /// As CUDA reads it; empty: there is no limit.
  std::string sm_percent_of(pid_t pid) {
    const std::string all = kernel_.read_file("/proc/" + std::to_string(pid) + "/environ").value_or("");
    const std::string name = std::string(1, '\0') + "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=";
    const auto at = all.find(name);
    return at == std::string::npos ? "" : std::string(all.c_str() + at + name.size());
  }
  /// With that process as its standby; returns the active, which is another than the one that was killed
  /// before: until the agent has seen its death, that one is still the active of the same standby.
  pid_t wait_until_protected_by(pid_t standby, pid_t killed) {
    pid_t active = 0;
    wait_for_status(tenant, [&](const auto& now) {
      if (now["phase"] != "serving" || now["standby_state"] != "ready") return false;
      active = now["active"]["pid"];
      return active != killed && now["standby"]["pid"] == standby;
    });
    return active;
  }
  /// The first `slow` processes are slow, so that a test has time to kill them; who comes after them is not.
  /// The `failing`th does not even begin.
  std::vector<std::string> decode_slowly_at_first(int slow, int failing = 0) const {
    const std::string script = "echo $$ >> \"$0\"; nth=$(wc -l < \"$0\"); test $nth -ne " +
                               std::to_string(failing) + " || exit 3; test $nth -gt " + std::to_string(slow) +
                               " || exec \"$@\" --pace-ms 400 --slow-until " + told_to_end_ + "; exec \"$@\"";
    std::vector<std::string> command = {"sh", "-c", script, sandbox_.file("started")};
    std::ranges::move(decode(), std::back_inserter(command));
    return command;
  }
  /// With a standby that is ready; returns the active.
  pid_t wait_until_protected(pid_t not_this_one = 0) {
    pid_t active = 0;
    wait_for_status(tenant, [&](const auto& now) {
      if (now["phase"] != "serving" || now["standby_state"] != "ready") return false;
      active = now["active"]["pid"];
      return active != not_this_one;
    });
    return active;
  }
  void expect_end(int status) {
    wait_for_end(*pair_);
    EXPECT_EQ(pair_->exit_status(), status) << testing::PrintToString(pair_->lines) << last_words();
  }
  const std::string& last_words() const { return pair_->actor->record().last_words; }

  Player* pair_ = nullptr;
};

TEST_F(RunPair, TwoActivesInTurnAreKilledAndTheThirdFinishes) {
  start_supervised();
  start_pair(decode_slowly_at_first(2));
  const pid_t first = wait_until_protected();
  wait_for_steps(3);
  send(first, SIGKILL);
  const pid_t second = wait_until_protected(first);
  send(second, SIGKILL);
  expect_end(0);
  expect_output_as_if_nothing_happened();
}

TEST_F(RunPair, ADeadStandbyIsReplaced) {
  start_supervised();
  start_pair(decode_slowly_at_first(2));
  const pid_t active = wait_until_protected();
  const pid_t standby = status_of(tenant)["standby"]["pid"];
  send(standby, SIGKILL);
  wait_for_status(tenant, [standby](const auto& now) {
    return now["standby_state"] == "ready" && now["standby"]["pid"] != standby;
  });
  EXPECT_EQ(pid_of(tenant), active);
  send(active, SIGKILL);
  expect_end(0);
  expect_output_as_if_nothing_happened();
}

TEST_F(RunPair, AStandbyThatFailsIsTriedAgain) {
  start_supervised();
  start_pair(decode_slowly_at_first(3, 2));
  const pid_t first = wait_until_protected();
  send(first, SIGKILL);
  send(wait_until_protected(first), SIGKILL);
  expect_end(0);
  expect_output_as_if_nothing_happened();
}

TEST_F(RunPair, OutlivesTheAgent) {
  start_supervised();
  start_pair(decode_slowly_at_first(2));
  const pid_t first = wait_until_protected();
  kill_agent();
  send(first, SIGKILL);
  wait_for_next_agent();
  const pid_t second = wait_until_protected(first);
  kill_agent();
  wait_for_next_agent();
  send(second, SIGKILL);
  expect_end(0);
  expect_output_as_if_nothing_happened();
}

TEST_F(RunPair, SigtermEndsTheWholeTenant) {
  start_supervised({"--lease-s", "1000"});
  start_pair(decode_slowly());
  wait_until_protected();
  pair_->actor->signal(SIGTERM);
  wait_for_end(*pair_);
  // MPS takes it off the GPU before the signal comes, which it may notice first.
  constexpr int lost_the_gpu = 3;
  EXPECT_THAT(pair_->exit_status(), testing::AnyOf(128 + SIGTERM, lost_the_gpu));
  wait_until_unknown();  // nothing is kept of who was told to end
}

// Its kernel under way would take the neighbour along, had nobody taken it off the GPU first.
TEST_F(RunPair, SigtermWhileTheAgentIsAwaySparesTheNeighbours) {
  start_supervised();
  Player& neighbour = start_neighbour();
  start_pair({program("guard_test_spinner")});
  wait("the spinner", [&] { return pair_->said("spinning"); });
  kill_agent_for_a_while();
  pair_->actor->signal(SIGTERM);
  resume_supervisor();
  wait_for_end(*pair_);
  expect_unharmed(neighbour);
}

TEST_F(RunPair, StartedWhileTheAgentIsAwayWaitsForTheNextOne) {
  start_supervised();
  kill_agent_for_a_while();
  start_pair(decode());
  expect_no_agent();
  resume_supervisor();
  expect_end(0);
}

// Whoever waits has a tenth of the SMs; whoever serves has them all, some time after a promotion.
TEST_F(RunPair, AStandbyWithFewMultiprocessorsHandsOverToOneWithAll) {
  start_supervised();
  start_pair({"--standby-sm-percent", "10"}, decode_slowly());
  const pid_t first = wait_until_protected();
  const pid_t waiting = status_of(tenant)["standby"]["pid"];
  EXPECT_EQ(sm_percent_of(first), "");
  EXPECT_EQ(sm_percent_of(waiting), "10");
  send(first, SIGKILL);
  const pid_t next = wait_until_protected_by(waiting, first);
  EXPECT_EQ(sm_percent_of(next), "");
  send(next, SIGKILL);  // and on
  let_them_end();
  expect_end(0);
  expect_output_as_if_nothing_happened();
}

TEST_F(RunPair, SaysWhyATenantIsLost) {
  start_supervised({"--lease-s", "1000"});
  start_pair(decode_slowly());
  const pid_t active = wait_until_protected();
  send(status_of(tenant)["standby"]["pid"], SIGKILL);
  send(active, SIGKILL);
  expect_end(125);  // what `firebreak run` ends with of itself
  EXPECT_THAT(last_words(), testing::HasSubstr("tenant 'llm' is lost: "));
  EXPECT_EQ(status_of(tenant)["phase"], "lost");
}

TEST_F(RunPair, WhoNeverJoinsRunsAlone) {
  start_supervised();
  start_pair({"sh", "-c", "echo once; exit 7"});
  expect_end(7);
  EXPECT_THAT(pair_->lines, testing::ElementsAre("once"));
}

}  // namespace
}  // namespace firebreak::tests
