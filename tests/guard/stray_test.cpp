// SPDX-License-Identifier: Apache-2.0
// A guarded tenant that strays: its neighbour goes on, and what becomes of it is the operator's to say.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

#include "ground/os/self.h"
#include "tests/guard/agent_on_stage.h"

namespace firebreak::tests {
namespace {

using testing::HasSubstr;

constexpr int mib = 1 << 20;

class Strays : public AgentOnStage {
 protected:
  Player& start_strayer(std::vector<std::string> run_arguments = {}) {
    Player& strayer = start_tenant("strayer", {program("guard_test_strayer")}, std::move(run_arguments));
    wait("the guard", [&] { return strayer.said("guarded") || strayer.actor->ended(); });
    // From now on its page faults are heard.
    wait_for_status("strayer", [](const auto& tenant) { return tenant["guard"]["state"] == "on"; });
    return strayer;
  }
  static std::string stray(const std::string& verb, int offset) {
    return verb + " " + std::to_string(offset);
  }
};

TEST_F(Strays, EndTheTenantInMidKernelAndNobodyElse) {
  start_agent();
  Player& neighbour = start_neighbour();
  Player& strayer = start_strayer();
  strayer.actor->tell(stray("spin", mib + 72));
  wait_for_end(strayer);
  EXPECT_NE(strayer.exit_status(), 0);
  wait("the agent's word", [&] { return agent_->said("contained stray of tenant strayer"); });
  EXPECT_TRUE(
      agent_->said("store to 0x567000100048, 72 bytes past the end of a 1 MiB allocation made by "
                   "cuMemAlloc, call 1"))
      << testing::PrintToString(agent_->lines);
  expect_unharmed(neighbour);
}

TEST_F(Strays, AreOnlyToldOfWhereTheOperatorSaysSoUpToANumber) {
  start_agent({"--stray-blocks", "2"});
  Player& neighbour = start_neighbour();
  Player& strayer = start_strayer({"--report-only"});
  for (const int block : {1, 2, 2}) strayer.actor->tell(stray("stray", block * 2 * mib));
  wait_for_status("strayer", [](const auto& tenant) { return tenant["guard"]["stray_blocks"] == 2; });
  const auto guard = status_of("strayer")["guard"];
  EXPECT_EQ(guard["on_stray"], "report");
  EXPECT_THAT(guard["last_stray"].get<std::string>(),
              HasSubstr("store to 0x567000400000, 3145728 bytes past"));
  EXPECT_FALSE(strayer.actor->ended());
  strayer.actor->tell(stray("spin", 6 * mib));
  wait_for_end(strayer);
  expect_unharmed(neighbour);
}

TEST_F(Strays, AreOnlyToldOfWhereTheAgentWasStartedSo) {
  start_agent({"--strays", "report"});
  Player& strayer = start_strayer();
  strayer.actor->tell(stray("stray", 2 * mib));
  wait_for_status("strayer", [](const auto& tenant) { return tenant["guard"]["strays"] == 1; });
  EXPECT_FALSE(strayer.actor->ended());
  EXPECT_EQ(command({"stop", "strayer"}).status.exit_code, 0);
  wait_for_end(strayer);
}

TEST_F(Strays, OfATenantThatLoadsNothingOfOursAreSwallowedWhereTheOperatorSaysSo) {
  const os::EnvironmentScope talkative(os::EnvironmentScope::Variables{{"FIREBREAK_LOG", "info"}});
  start_agent({"--sparse"});
  Player& neighbour = start_neighbour();
  Player& strayer = start_tenant("strayer", {program("firebreak-lab"), "inject", "unmapped-store", "--wait",
                                             "--address", std::to_string(0x1dea0000)});
  wait("the strayer", [&] { return strayer.said("prepared"); });
  // How many, the sanitizers say, which keep some for themselves.
  const std::string strayer_process = fmt::format("process {}: ", pid_of("strayer"));
  wait("the sparse ranges", [&] {
    return std::ranges::any_of(agent_->lines, [&](const std::string& line) {
      return line.find(strayer_process) != std::string::npos &&
             line.find("swallow strays") != std::string::npos;
    });
  });
  strayer.actor->tell("go");
  wait("the answer", [&] { return strayer.said("answered") || strayer.actor->ended(); });
  EXPECT_TRUE(strayer.said("CUDA_SUCCESS")) << testing::PrintToString(strayer.lines);
  strayer.actor->close_input();
  wait_for_end(strayer);
  expect_unharmed(neighbour);
}

// The agent stands still when the guard is up, and the stray is the first thing that the tenant does.
TEST_F(Strays, AreHeardFromTheFirstOneOn) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer's runtime wants to be the first library";
#endif
  environment_ = {{"FIREBREAK_GUARD_WAIT_MS", "60000"}};
  start_agent();
  const std::string stopped = "kill -STOP $0; (sleep 0.3; kill -CONT $0) & exec $1 inject use-after-unmap";
  const std::string agent = std::to_string(agent_->actor->record().pid);
  const Player& strayer =
      start_tenant("strayer", {"sh", "-c", stopped, agent, program("firebreak-lab")}, {"--guard"});
  wait("the agent's word", [&] { return agent_->said("contained stray of tenant strayer"); });
  wait_for_end(strayer);
}

TEST_F(Strays, NameTheirKernelWhereItsLaunchWasCounted) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer's runtime wants to be the first library";
#endif
  start_agent();
  Player& spinner = start_spinner("--stray", {"--guard"});
  wait_for_status("spinner", [](const auto& tenant) { return tenant["guard"]["state"] == "on"; });
  spinner.actor->tell("go");
  wait_for_end(spinner);
  wait("the agent's word", [&] { return agent_->said("contained stray of tenant spinner"); });
  EXPECT_TRUE(
      agent_->said(" by kernel `stray`, 0 bytes past the end of a 2 MiB allocation made by cuMemAlloc"))
      << testing::PrintToString(agent_->lines);
}

TEST_F(Strays, AreSeenByAWatchThatKnowsNobody) {
  start_agent({"--strays", "report"});
  Player& strayer = start_strayer();
  Player& watch = start({program("firebreak"), "watch", "--json", "--pid", std::to_string(pid_of("strayer"))},
                        {{"FIREBREAK_SOFTGPU_DIR", sandbox_.file("d/softgpu")}});
  wait("the guard's word", [&] { return watch.said(R"("event":"guard")"); });
  EXPECT_TRUE(watch.said(R"("state":"on")"));
  strayer.actor->tell(stray("stray", mib + 72));
  wait("the stray", [&] { return watch.said(R"("event":"stray")"); });
  EXPECT_TRUE(
      watch.said(R"("nearest":"72 bytes past the end of a 1 MiB allocation made by cuMemAlloc, call 1")"));
  strayer.actor->close_input();
  wait_for_end(strayer);
  wait("the sum", [&] { return watch.said(R"("event":"strays")"); });
  watch.actor->signal(SIGTERM);
  wait_for_end(watch);
  EXPECT_EQ(watch.exit_status(), 0);
  EXPECT_FALSE(watch.said(R"("event":"incident")")) << testing::PrintToString(watch.lines);
}

}  // namespace
}  // namespace firebreak::tests
