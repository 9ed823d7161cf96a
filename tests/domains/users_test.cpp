// SPDX-License-Identifier: Apache-2.0
// A user who is nobody special runs tenants beside root's, by the tenants' socket (docs/use/security.md).
#include <unistd.h>

#include "tests/guard/agent_on_stage.h"

namespace firebreak::tests {
namespace {

using testing::HasSubstr;
using testing::Not;

class SeveralUsers : public AgentOnStage {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can be two users";
    ASSERT_TRUE(os::let_through(sandbox_.file("")));
    const std::string gpu = sandbox_.file("gpu");
    ASSERT_TRUE(os::make_directories(gpu));
    ASSERT_TRUE(os::let_through(gpu));
    environment_.emplace_back("FIREBREAK_SOFTGPU_DIR", gpu);
    start_agent({"--tenant-group", "65534"});
  }
  /// `firebreak COMMAND...` as that user, to its end.
  Player& as_nobody(std::vector<std::string> arguments, const std::string& socket = "tenants.sock") {
    const std::string command = arguments.front();
    std::vector<std::string> all = {"sh", "-c", R"(exec "$@" 2>&1)", "sh"};
    for (const char* word : {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"})
      all.emplace_back(word);
    for (const std::string& word :
         {program("firebreak"), command, std::string("--socket"), sandbox_.file("d/" + socket)})
      all.push_back(word);
    all.insert(all.end(), arguments.begin() + 1, arguments.end());
    Player& player = start(std::move(all));
    wait_for_end(player);
    return player;
  }
};

TEST_F(SeveralUsers, OneWhoIsNobodySpecialRunsAndSeesItsOwn) {
  Player& neighbour = start_neighbour();
  Player& ran = as_nobody({"run", "--name", "mine", "--", "sh", "-c", "echo runs as user $(id -u)"});
  EXPECT_EQ(ran.exit_status(), 0);
  EXPECT_TRUE(ran.said("runs as user 65534"));
  Player& status = as_nobody({"status"});
  EXPECT_EQ(status.exit_status(), 0);
  EXPECT_FALSE(status.said("neighbour"));
  Player& stop = as_nobody({"stop", "neighbour"});
  EXPECT_NE(stop.exit_status(), 0);
  EXPECT_TRUE(stop.said("tenant 'neighbour' is another user's"));
  Player& place = as_nobody({"run", "--name", "neighbour", "--", "true"});
  EXPECT_NE(place.exit_status(), 0);
  EXPECT_TRUE(place.said("tenant 'neighbour' is another user's"));
  expect_unharmed(neighbour);
}

TEST_F(SeveralUsers, TheyComputeOnOneGpuBesideEachOther) {
  Player& neighbour = start_neighbour();
  Player& ran = as_nobody({"run", "--name", "mine", "--", program("firebreak-checker"), "--seconds", "0.1"});
  EXPECT_EQ(ran.exit_status(), 0) << testing::PrintToString(ran.lines);
  EXPECT_TRUE(ran.said("\"wrong_words\": 0")) << testing::PrintToString(ran.lines);
  expect_unharmed(neighbour);
}

TEST_F(SeveralUsers, TheOperatorsSocketIsNotForThem) {
  Player& status = as_nobody({"status"}, "agent.sock");
  EXPECT_NE(status.exit_status(), 0);
  EXPECT_TRUE(status.said("is not yours to ask"));
}

}  // namespace
}  // namespace firebreak::tests
