// SPDX-License-Identifier: Apache-2.0
// A kernel on which the guard ranges do not work, played by the software GPU: it is noticed once, outside of
// any tenant, and then the guard is off and says so.
#include "ground/os/self.h"
#include "tests/guard/agent_on_stage.h"

namespace firebreak::tests {
namespace {

using testing::HasSubstr;
using testing::Not;

const Sandbox::Environment asking{{"FIREBREAK_SOFTGPU_UVM_ASKS_CPU", "1"}};

class GuardTrial : public AgentOnStage {
 protected:
  void SetUp() override {
    AgentOnStage::SetUp();
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "the thread sanitizer keeps the addresses for itself that guard ranges lie over";
#endif
  }
  std::string guard_line(const Sandbox::Environment& extra = {}) {
    const std::string all = sandbox_.run("firebreak", {"doctor"}, extra).output;
    const std::size_t begin = all.find("guard (");
    return begin == std::string::npos ? "" : all.substr(begin, all.find('\n', begin) - begin);
  }
};

TEST_F(GuardTrial, IsWhatDoctorShows) {
  EXPECT_THAT(guard_line(), HasSubstr("works on this kernel and driver"));
  EXPECT_THAT(guard_line(asking), HasSubstr("fails: the GPU may not use what the CPU may not"));
  EXPECT_THAT(guard_line(), HasSubstr("works on this kernel and driver"));
}

TEST_F(GuardTrial, DoctorsStatusIsThatOfTheGpuThatIsChosen) {
  EXPECT_EQ(sandbox_.run("firebreak", {"doctor"}).status.exit_code, 0) << "the software GPU";
  const auto wrong = sandbox_.run("firebreak", {"doctor"}, {{"FIREBREAK_GPU", "sfot"}});
  EXPECT_EQ(wrong.status.exit_code, 2);
  EXPECT_THAT(wrong.output, HasSubstr("FIREBREAK_GPU is 'sfot'"));
  const Sandbox::Environment exclusive = {{"FIREBREAK_SOFTGPU_IS_EXCLUSIVE", "1"}};
  EXPECT_THAT(sandbox_.run("firebreak", {"doctor"}, exclusive).output, HasSubstr("-c DEFAULT -i GPU-"));
}

TEST_F(GuardTrial, IsInNoDomainWhateverTheEnvironmentSays) {
  start_agent();
  Player& neighbour = start_neighbour();
  auto environment = asking;
  environment.emplace_back(
      "CUDA_MPS_PIPE_DIRECTORY",
      sandbox_.file("d/" + status_of("neighbour")["active"]["domain"].get<std::string>() + "/pipe"));
  environment.emplace_back("FIREBREAK_SOFTGPU_DIR", sandbox_.file("d/softgpu"));
  EXPECT_THAT(guard_line(environment), HasSubstr("fails"));
  expect_unharmed(neighbour);
}

TEST_F(GuardTrial, SwitchesAPreloadedGuardOff) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "a sanitizer's runtime wants to be the first library";
#endif
  auto guarded = asking;
  guarded.emplace_back("LD_PRELOAD", FIREBREAK_GUARD_LIBRARY);
  const auto trusting = sandbox_.run("guard_test_caller", {"early"}, guarded);
  EXPECT_THAT(trusting.output, HasSubstr("guard ranges 1"));
  EXPECT_THAT(guard_line(asking), HasSubstr("fails"));
  const auto knowing = sandbox_.run("guard_test_caller", {"early"}, guarded);
  EXPECT_THAT(knowing.output,
              HasSubstr("firebreak: the guard is off: it does not work on this kernel and driver"));
  EXPECT_THAT(knowing.output, HasSubstr("guard ranges 0"));
}

TEST_F(GuardTrial, IsToldByTheAgent) {
  const os::EnvironmentScope scope(os::EnvironmentScope::Variables{asking});
  start_agent();
  const auto status = nlohmann::json::parse(command({"status", "--json"}).output, nullptr, false);
  EXPECT_THAT(status["guard_test"].get<std::string>(), HasSubstr("fails: the GPU may not"));
}

}  // namespace
}  // namespace firebreak::tests
