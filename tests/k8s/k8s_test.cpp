// SPDX-License-Identifier: Apache-2.0
// firebreak-k8s as a program: a real agent with two domains on the software GPU, and a kubelet stand-in.
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "tests/doubles/k8s/kubelet_stand_in.h"
#include "tests/guard/agent_on_stage.h"

namespace firebreak::tests {
namespace {

using k8s::KubeletStandIn;
using testing::HasSubstr;
using testing::SizeIs;

class SeatsOfDomains : public AgentOnStage {
 protected:
  void TearDown() override {
    if (plugin_ != nullptr && !plugin_->actor->ended()) {
      plugin_->actor->signal(SIGTERM);
      wait_for_end(*plugin_);
      EXPECT_EQ(plugin_->exit_status(), 0) << testing::PrintToString(plugin_->lines);
    }
    AgentOnStage::TearDown();
  }
  void start_plugin(std::vector<std::string> arguments = {}) {
    std::vector<std::string> command = {"sh",
                                        "-c",
                                        R"(exec "$@" 2>&1)",
                                        "sh",
                                        program("firebreak-k8s"),
                                        "--socket",
                                        sandbox_.file("d/status.sock"),
                                        "--kubelet-folder",
                                        folder_,
                                        "--seats",
                                        "2"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    plugin_ = &start(std::move(command));
  }
  void start_kubelet() {
    kubelet_.reset();
    kubelet_ = std::make_unique<KubeletStandIn>(folder_);
  }
  static KubeletStandIn::Health health(const std::string& of_a, const std::string& of_b) {
    return {{"a-1", of_a}, {"a-2", of_a}, {"b-1", of_b}, {"b-2", of_b}};
  }
  void wait_for_health(const std::string& of_a, const std::string& of_b) {
    ASSERT_TRUE(until([&] { return kubelet_->health() == health(of_a, of_b); }))
        << testing::PrintToString(plugin_->lines);
  }
  /// What none of the stage's processes says is looked for again and again; false: it did not come.
  bool until(const std::function<bool()>& holds) {
    return kubelet_->wait([&] {
      while (stage_->loop().run_once(Milliseconds(0))) {
      }
      return holds();
    });
  }
  std::ptrdiff_t times_said(const std::string& begin) const {
    return std::ranges::count_if(plugin_->lines,
                                 [&](const std::string& line) { return line.starts_with(begin); });
  }

  std::string folder_ = sandbox_.file("device-plugins");
  std::unique_ptr<KubeletStandIn> kubelet_;
  Player* plugin_ = nullptr;
};

TEST_F(SeatsOfDomains, AreUnhealthyWhileTheirDomainDrainsAfterAFaultAndThenHealthyAgain) {
  start_agent();
  start_kubelet();
  start_plugin();
  wait_for_health("Healthy", "Healthy");
  // One that does not notice the fault keeps its domain draining.
  Player& neighbour = start_neighbour();
  const std::string domain = status_of("neighbour")["active"]["domain"];
  const pid_t pid = pid_of("neighbour");
  send(pid, SIGSTOP);
  Player& rogue = start({program("firebreak"), "run", "--socket", socket_, "--name", "rogue", "--",
                         program("firebreak-lab"), "inject", "misaligned-load"});
  wait_for_end(rogue);
  const bool is_a = domain == "a";
  wait_for_health(is_a ? "Unhealthy" : "Healthy", is_a ? "Healthy" : "Unhealthy");
  send(pid, SIGCONT);
  wait_for_end(neighbour);
  wait_for_health("Healthy", "Healthy");
  EXPECT_THAT(kubelet_->registrations(), SizeIs(1));
}

TEST_F(SeatsOfDomains, AContainerWithOneReachesWhatTheAgentHas) {
  start_agent();
  start_kubelet();
  start_plugin();
  wait_for_health("Healthy", "Healthy");
  v1beta1::ContainerAllocateResponse response;
  const grpc::Status status = kubelet_->allocate({"b-1"}, response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  std::map<std::string, std::string> environment(response.envs().begin(), response.envs().end());
  EXPECT_EQ(environment["FIREBREAK_SOCKET"], sandbox_.file("d/tenants.sock"));
  EXPECT_EQ(environment["CUDA_MPS_PIPE_DIRECTORY"], sandbox_.file("d/b/pipe"));
  EXPECT_EQ(response.mounts_size(), 6);
  for (const auto& mount : response.mounts())
    EXPECT_TRUE(std::filesystem::exists(mount.host_path())) << mount.host_path();
  // By its environment alone, as a container's program.
  environment.erase("LD_PRELOAD");
  Sandbox::Environment extra(environment.begin(), environment.end());
  Player& tenant = start({program("firebreak-lab"), "victim", "--pace-ms", "5"}, extra);
  wait("the program", [&] { return tenant.said("ready"); });
  EXPECT_TRUE(until([&] {
    const auto now = nlohmann::json::parse(command({"status", "--json"}).output, nullptr, false);
    return now.is_object() && now["domains"][1]["name"] == "b" && now["domains"][1]["foreign"].size() == 1;
  })) << "MPS names nobody";
  expect_unharmed(tenant);
}

TEST_F(SeatsOfDomains, OutliveAKubeletAndAnAgentThatRestart) {
  start_plugin();
  wait("its word", [&] { return plugin_->said("waits for " + folder_ + "/kubelet.sock"); });
  EXPECT_TRUE(plugin_->said("no agent is known"));
  start_kubelet();
  start_agent({"--lease-s", "1"});
  wait_for_health("Healthy", "Healthy");
  kubelet_->vanish();
  start_kubelet();
  wait_for_health("Healthy", "Healthy");
  EXPECT_THAT(kubelet_->registrations(), SizeIs(1));
  agent_->actor->signal(SIGINT);
  wait_for_end(*agent_);
  wait("the agent's end", [&] { return times_said("firebreak-k8s: no firebreak agent at ") == 2; });
  EXPECT_EQ(kubelet_->health(), health("Healthy", "Healthy")) << "it may come again";
  start_agent();
  wait("the next agent", [&] { return times_said("firebreak-k8s: the agent answers") == 2; });
  EXPECT_EQ(kubelet_->health(), health("Healthy", "Healthy"));
}

TEST_F(SeatsOfDomains, OfAnAgentThatStaysAwayAreUnhealthy) {
  start_agent();
  start_kubelet();
  start_plugin({"--agent-patience-s", "0"});
  wait_for_health("Healthy", "Healthy");
  agent_->actor->signal(SIGINT);
  wait_for_end(*agent_);
  wait_for_health("Unhealthy", "Unhealthy");
  start_agent();
  wait_for_health("Healthy", "Healthy");
}

TEST_F(SeatsOfDomains, WrongOptionsAreOneLine) {
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"--seats", "0"},
                                                {"--seats", "many"},
                                                {"--seets", "2"},
                                                {"--agent-patience-s", "-1"}}) {
    const os::ProgramResult done = sandbox_.run("firebreak-k8s", wrong);
    EXPECT_EQ(done.status.exit_code, 2);
    EXPECT_THAT(done.output, testing::StartsWith("firebreak-k8s: "));
    EXPECT_THAT(done.output, HasSubstr(wrong.front()));
    EXPECT_EQ(std::ranges::count(done.output, '\n'), 1) << done.output;
  }
}

}  // namespace
}  // namespace firebreak::tests
