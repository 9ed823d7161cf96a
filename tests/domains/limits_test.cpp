// SPDX-License-Identifier: Apache-2.0
// What a tenant may have of the GPU, and which GPU: from the command line to its environment.
#include <filesystem>

#include "tests/guard/agent_on_stage.h"

namespace firebreak::tests {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* software_gpu = "GPU-66697265-6272-6561-6b2d-736f66742d30";

class Limits : public AgentOnStage {
 protected:
  /// What a tenant's environment says of CUDA.
  os::ProgramResult environment_of_a_tenant(const std::vector<std::string>& run_arguments) {
    std::vector<std::string> arguments = {"run", "--socket", socket_, "--name", "x"};
    arguments.insert(arguments.end(), run_arguments.begin(), run_arguments.end());
    arguments.insert(arguments.end(), {"--", "sh", "-c", "env | grep ^CUDA_"});
    return sandbox_.run("firebreak", std::move(arguments));
  }
};

TEST_F(Limits, AreInTheTenantsEnvironment) {
  start_agent();
  EXPECT_THAT(environment_of_a_tenant({"--sm-percent", "50", "--memory-mib", "256"}).output,
              AllOf(HasSubstr("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50\n"),
                    HasSubstr("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=256M\n")));
  EXPECT_THAT(environment_of_a_tenant({}).output, Not(HasSubstr("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE")));
}

TEST_F(Limits, OfTheAgentAreThoseOfTenantsThatNameNone) {
  start_agent({"--sm-percent", "30", "--memory-mib", "100"});
  EXPECT_THAT(environment_of_a_tenant({"--memory-mib", "200"}).output,
              AllOf(HasSubstr("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=30\n"),
                    HasSubstr("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=200M\n")));
}

TEST_F(Limits, ATenantWithoutANameIsNamedAfterItsProgram) {
  start_agent();
  const std::string link = sandbox_.file("my program");
  std::filesystem::create_symlink("/bin/sh", link);
  const auto seen = sandbox_.run("firebreak", {"run", "--socket", socket_, "--", link, "-c",
                                               program("firebreak") + " status --socket " + socket_});
  EXPECT_EQ(seen.status.exit_code, 0) << seen.output;
  EXPECT_THAT(seen.output, testing::ContainsRegex("my_program-[0-9]+"));
}

TEST_F(Limits, AStandbyNeedsTheNameOfItsTenant) {
  for (const char* what : {"--standby", "--pair"}) {
    const auto refused = sandbox_.run("firebreak", {"run", "--socket", socket_, what, "--", "true"});
    EXPECT_NE(refused.status.exit_code, 0) << what;
    EXPECT_THAT(refused.output, HasSubstr("--name")) << what;
  }
}

TEST_F(Limits, ThatMakeNoSenseAreRefused) {
  for (const char* percent : {"0", "101", "-1", "half"}) {
    const auto refused = environment_of_a_tenant({"--sm-percent", percent});
    EXPECT_NE(refused.status.exit_code, 0) << percent;
    EXPECT_THAT(refused.output, HasSubstr("--sm-percent")) << percent;
  }
}

TEST_F(Limits, AGpuIsNamedByItsUuidToDaemonAndTenant) {
  start_agent({"--gpu", "GPU-66697265"});
  EXPECT_THAT(environment_of_a_tenant({"--gpu", "GPU-6"}).output,
              HasSubstr(std::string("CUDA_VISIBLE_DEVICES=") + software_gpu + "\n"));
  EXPECT_THAT(command({"status"}).output, HasSubstr(std::string("a       serving  ") + software_gpu));
  EXPECT_THAT(environment_of_a_tenant({"--gpu", "GPU-7"}).output,
              HasSubstr(std::string("there is no GPU 'GPU-7' (there is ") + software_gpu));
}

TEST_F(Limits, AGpuThatIsNotThereIsSaid) {
  const auto none = sandbox_.run("firebreakd", {"--directory", sandbox_.file("e"), "--gpu", "GPU-7"});
  EXPECT_EQ(none.status.exit_code, 1);
  EXPECT_THAT(none.output, HasSubstr(std::string("there is no GPU 'GPU-7' (there is ") + software_gpu));
  const auto twice = sandbox_.run(
      "firebreakd", {"--directory", sandbox_.file("e"), "--gpu", "GPU-6", "--gpu", software_gpu});
  EXPECT_EQ(twice.status.exit_code, 1);
  EXPECT_THAT(twice.output, HasSubstr("is named twice"));
}

}  // namespace
}  // namespace firebreak::tests
