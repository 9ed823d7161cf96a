// SPDX-License-Identifier: Apache-2.0
// firebreak-k8s as a program: a real agent on the software GPU, whose faults a stand-in of the API server is
// told.
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "tests/doubles/cluster/api_server_stand_in.h"
#include "tests/doubles/k8s/kubelet_stand_in.h"
#include "tests/guard/agent_on_stage.h"

namespace firebreak::tests {
namespace {

using cluster::ApiServerStandIn;
using testing::HasSubstr;
using testing::SizeIs;

/// A control group as a pod's container has it, where this machine lets us make one.
class PodGroup {
 public:
  explicit PodGroup(std::string uid) : uid_(std::move(uid)) {
    for (const char* root : {"/sys/fs/cgroup", "/sys/fs/cgroup/pids"}) {
      if (!std::filesystem::exists(std::string(root) + "/cgroup.procs")) continue;
      pod_ = fmt::format("{}/kubepods/pod{}", root, uid_);
      std::error_code failed;
      std::filesystem::create_directories(pod_ + "/c", failed);
      if (!failed) return;
    }
    pod_.clear();
  }
  PodGroup(const PodGroup&) = delete;
  PodGroup& operator=(const PodGroup&) = delete;
  ~PodGroup() {
    std::error_code ignored;
    std::filesystem::remove(pod_ + "/c", ignored);
    std::filesystem::remove(pod_, ignored);
    std::filesystem::remove(std::filesystem::path(pod_).parent_path(),
                            ignored);  // where no other test is in it
  }
  bool is_there() const { return !pod_.empty(); }
  const std::string& uid() const { return uid_; }
  std::string file() const { return pod_ + "/c/cgroup.procs"; }

 private:
  std::string uid_;
  std::string pod_;
};

class FaultsInACluster : public AgentOnStage {
 protected:
  void TearDown() override {
    end_plugin();
    AgentOnStage::TearDown();
  }
  void write_kubeconfig() { std::ofstream(sandbox_.file("kubeconfig")) << api_->kubeconfig("secret"); }
  void start_plugin() {
    plugin_ = &start({"sh", "-c", R"(exec "$@" 2>&1)", "sh", program("firebreak-k8s"), "--socket",
                      sandbox_.file("d/status.sock"), "--kubelet-folder", sandbox_.file("device-plugins"),
                      "--kubeconfig", sandbox_.file("kubeconfig"), "--node-name", "n1"});
  }
  void end_plugin() {
    if (plugin_ == nullptr || plugin_->actor->ended()) return;
    plugin_->actor->signal(SIGTERM);
    wait_for_end(*plugin_);
    EXPECT_EQ(plugin_->exit_status(), 0) << testing::PrintToString(plugin_->lines);
  }
  bool until(const std::function<bool()>& holds) {
    return api_->wait([&] {
      while (stage_->loop().run_once(Milliseconds(0))) {
      }
      return holds();
    });
  }
  void wait_for_condition(const std::string& wanted) {
    ASSERT_TRUE(until([&] {
      const auto condition = api_->condition("FirebreakDomainFault");
      return condition.is_object() && condition["status"] == wanted;
    })) << wanted
        << testing::PrintToString(plugin_->lines);
  }
  /// In that group where it has one.
  void raise_fault(const std::string& group = {}) {
    const std::string enter = group.empty() ? "" : "echo $$ >" + group + "; ";
    Player& rogue =
        start({"sh", "-c", enter + R"(exec "$@")", "sh", program("firebreak"), "run", "--socket", socket_,
               "--name", "rogue", "--", program("firebreak-lab"), "inject", "misaligned-load"});
    wait_for_end(rogue);
  }
  /// It does not notice a fault, and keeps its domain draining until it is let go on.
  void stop_neighbour() {
    neighbour_ = &start_neighbour();
    stopped_ = pid_of("neighbour");
    send(stopped_, SIGSTOP);
  }
  /// All is well, and then a domain serves nobody until let_domain_serve().
  void begin_with_a_fault_that_lasts() {
    write_kubeconfig();
    start_agent();
    start_plugin();
    wait_for_condition("False");
    stop_neighbour();
    raise_fault();
    wait_for_condition("True");
  }
  void let_domain_serve() {
    send(stopped_, SIGCONT);
    wait_for_end(*neighbour_);
  }

  std::unique_ptr<ApiServerStandIn> api_ = std::make_unique<ApiServerStandIn>();
  Player* plugin_ = nullptr;
  Player* neighbour_ = nullptr;
  pid_t stopped_ = 0;
};

TEST_F(FaultsInACluster, AreAConditionAsLongAsTheDomainServesNobody) {
  begin_with_a_fault_that_lasts();
  EXPECT_THAT(api_->condition("FirebreakDomainFault")["message"], HasSubstr(" is draining"));
  let_domain_serve();
  wait_for_condition("False");
}

TEST_F(FaultsInACluster, AreEventsOfTheNodeAndOfThePodThatCausedThem) {
  const PodGroup group(fmt::format("{:08x}-0e1f-4a5b-8c6d-7e8f90a1b2c3", ::getpid()));
  if (!group.is_there()) GTEST_SKIP() << "nobody makes control groups here";
  api_->add_pod("x", "y", group.uid());
  write_kubeconfig();
  start_agent();
  start_plugin();
  raise_fault(group.file());
  ASSERT_TRUE(until([&] { return !api_->annotation(group.uid(), "firebreak.dev/last-fault").empty(); }))
      << testing::PrintToString(plugin_->lines) << command({"incidents", "--json"}).output;
  EXPECT_THAT(api_->annotation(group.uid(), "firebreak.dev/last-fault"), HasSubstr("(sm) in domain "));
  const auto events = api_->events();
  ASSERT_THAT(events, SizeIs(2));
  EXPECT_THAT(events[0]["message"], HasSubstr("caused by pod x/y (tenant rogue): it harmed nobody else"));
  const auto faults = nlohmann::json::parse(command({"faults", "--json"}).output, nullptr, false);
  ASSERT_EQ(faults.size(), 1u);
  for (const auto& event : events) {
    EXPECT_THAT(event["message"], testing::StartsWith(faults[0]["id"].get<std::string>() + ": "));
    EXPECT_EQ(event["firstTimestamp"], faults[0]["at"]);
  }
  EXPECT_EQ(events[0]["reason"], "GpuFaultContained");
  EXPECT_EQ(events[1]["involvedObject"]["name"], "y");
  EXPECT_EQ(events[1]["reason"], "CausedGpuFault");
}

TEST_F(FaultsInACluster, AreTheSameAfterARestartInTheirMidst) {
  begin_with_a_fault_that_lasts();
  const auto changed = api_->condition("FirebreakDomainFault")["lastTransitionTime"];
  end_plugin();
  EXPECT_EQ(api_->condition("FirebreakDomainFault")["status"], "True") << "nobody is there who knows better";
  const std::size_t before = api_->count("PATCH", "/nodes/n1/status");
  start_plugin();
  ASSERT_TRUE(until([&] { return api_->count("PATCH", "/nodes/n1/status") > before; }));
  EXPECT_EQ(api_->condition("FirebreakDomainFault")["lastTransitionTime"], changed);
  let_domain_serve();
  wait_for_condition("False");
  ASSERT_TRUE(until([&] { return !api_->events().empty(); }));
  EXPECT_THAT(api_->events(), SizeIs(1));
  EXPECT_THAT(api_->events()[0]["message"], HasSubstr("(sm) in domain "));
}

// Nobody who asks for seats waits for an API server.
TEST_F(FaultsInACluster, AServerThatIsAwayOrNeverAnswersCostsALineAlone) {
  api_->do_instead({.kind = cluster::Mischief::Kind::DoAndBeLate, .times = 1'000});
  write_kubeconfig();
  start_agent();
  k8s::KubeletStandIn kubelet(sandbox_.file("device-plugins"));
  start_plugin();
  ASSERT_TRUE(kubelet.wait([&] { return kubelet.health().size() == 8; }));
  ASSERT_TRUE(until([&] { return !api_->heard().empty(); }));
  const int port = api_->port();
  end_plugin();  // in the midst of a question
  api_ = std::make_unique<ApiServerStandIn>();
  EXPECT_NE(api_->port(), port);
  start_plugin();  // to where nobody is
  const auto times = [&](const std::string& begin) {
    return std::ranges::count_if(plugin_->lines,
                                 [&](const std::string& line) { return line.starts_with(begin); });
  };
  const std::string trouble = "firebreak-k8s: the API server cannot be told of faults, and is asked again: ";
  wait("its word", [&] { return times(trouble) > 0; });
  wait("the kubelet", [&] { return times("firebreak-k8s: the kubelet has firebreak.dev/seat") > 0; });
  write_kubeconfig();  // of the one that is there, and nobody starts anything again
  wait_for_condition("False");
  EXPECT_EQ(times(trouble), 1);
}

}  // namespace
}  // namespace firebreak::tests
