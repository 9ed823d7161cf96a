// SPDX-License-Identifier: Apache-2.0
#include "commands/k8s/plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ground/os/file.h"
#include "tests/doubles/k8s/kubelet_stand_in.h"

namespace firebreak::k8s {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

using Health = KubeletStandIn::Health;

std::string status_of(const std::string& state_of_a) {
  return R"({"tenants_socket": "/run/firebreak/tenants.sock", "domains": [
      {"name": "a", "gpu": "GPU-1", "state": ")" +
         state_of_a + R"("}, {"name": "b", "gpu": "GPU-1", "state": "serving"}]})";
}

const Health all_healthy = {{"a-1", "Healthy"}, {"a-2", "Healthy"}, {"b-1", "Healthy"}, {"b-2", "Healthy"}};
const Health b_healthy = {{"a-1", "Unhealthy"}, {"a-2", "Unhealthy"}, {"b-1", "Healthy"}, {"b-2", "Healthy"}};
const Health none_healthy = {
    {"a-1", "Unhealthy"}, {"a-2", "Unhealthy"}, {"b-1", "Unhealthy"}, {"b-2", "Unhealthy"}};

/// Time stands still but for advance().
class PluginTest : public testing::Test {
 protected:
  os::TemporaryDirectory files = std::move(os::TemporaryDirectory::create().value());
  std::string folder = files.path() + "/device-plugins";
  FakeClock clock;
  Result<std::string> answer = status_of("serving");
  std::vector<std::string> lines;
  std::unique_ptr<KubeletStandIn> kubelet;
  std::unique_ptr<Plugin> plugin = make_plugin();

  std::unique_ptr<Plugin> make_plugin() {
    return std::make_unique<Plugin>(
        folder,
        OfferRules{"/run/firebreak/status.sock", nullptr, 2, std::chrono::seconds(30), "/usr/lib/guard.so",
                   "/dev/shm"},
        Plugin::Surroundings{clock, [this] { return answer; },
                             [this](const std::string& line) { lines.push_back(line); }});
  }
  void start_kubelet(KubeletStandIn::Habits habits = {}) {
    kubelet.reset();
    kubelet = std::make_unique<KubeletStandIn>(folder, habits);
  }
  void register_with_kubelet() {
    start_kubelet();
    plugin->look();
    ASSERT_TRUE(kubelet->wait_for_health(all_healthy));
  }
  void advance(Nanoseconds by) {
    clock.advance(by);
    plugin->look();
  }
  void be_in(const std::string& state_of_a) {
    answer = status_of(state_of_a);
    plugin->look();
  }
  /// The plugin sees the ends of streams some time after whoever ended them.
  bool is_registered_again(std::size_t times) {
    return kubelet->wait([&] {
      advance(Registration::watch_patience);
      return kubelet->registrations().size() >= times;
    });
  }
};

TEST_F(PluginTest, WaitsForTheKubeletAndRegistersOnce) {
  plugin->look();
  plugin->look();
  EXPECT_THAT(lines, ElementsAre("the agent answers", "4 of 4 seats are healthy",
                                 "waits for " + folder + "/kubelet.sock"));
  register_with_kubelet();
  for (int i = 0; i < 10; ++i) advance(std::chrono::hours(1));
  const auto made = kubelet->registrations();
  ASSERT_EQ(made.size(), 1u);
  EXPECT_EQ(made[0].version(), "v1beta1");
  EXPECT_EQ(made[0].endpoint(), "firebreak.sock");
  EXPECT_EQ(made[0].resource_name(), "firebreak.dev/seat");
  EXPECT_TRUE(made[0].options().get_preferred_allocation_available());
  EXPECT_FALSE(made[0].options().pre_start_required());
  EXPECT_EQ(lines.back(), "the kubelet has firebreak.dev/seat");
}

TEST_F(PluginTest, SeatsOfADomainAreUnhealthyUntilItServesAgain) {
  register_with_kubelet();
  for (const char* state : {"draining", "restarting"}) {
    be_in(state);
    EXPECT_TRUE(kubelet->wait_for_health(b_healthy)) << state;
    be_in("serving");
    EXPECT_TRUE(kubelet->wait_for_health(all_healthy)) << state;
  }
  EXPECT_EQ(kubelet->registrations().size(), 1u);
  EXPECT_EQ(kubelet->lists(), std::vector<std::size_t>{5}) << "and nothing is told that is not new";
}

TEST_F(PluginTest, AKubeletThatRestartsIsRegisteredWithAgain) {
  register_with_kubelet();
  for (int i = 0; i < 3; ++i) {
    start_kubelet();  // this kubelet takes our socket away
    be_in(i % 2 == 0 ? "draining" : "serving");
    EXPECT_TRUE(kubelet->wait_for_health(i % 2 == 0 ? b_healthy : all_healthy));
    EXPECT_EQ(kubelet->registrations().size(), 1u);
  }
}

TEST_F(PluginTest, AKubeletThatVanishesInMidWatchIsWaitedFor) {
  register_with_kubelet();
  kubelet->vanish();
  for (int i = 0; i < 20; ++i) be_in(i % 2 == 0 ? "draining" : "serving");
  // Its socket's name is there, and nobody answers.
  EXPECT_TRUE(kubelet->wait([this] {
    advance(Registration::watch_patience);
    return std::ranges::any_of(lines, [](const std::string& line) {
      return line.starts_with("the kubelet does not take firebreak.dev/seat: ");
    });
  }));
  start_kubelet();
  be_in("draining");
  EXPECT_TRUE(kubelet->wait_for_health(b_healthy));
  EXPECT_EQ(lines.back(), "the kubelet has firebreak.dev/seat") << testing::PrintToString(lines);
}

TEST_F(PluginTest, AStreamThatTheKubeletLostIsAskedForAgain) {
  register_with_kubelet();
  kubelet->stop_watching();
  EXPECT_EQ(kubelet->streams(), 0u);
  EXPECT_TRUE(is_registered_again(2));
  EXPECT_TRUE(kubelet->wait([this] { return kubelet->streams() == 1; }));
}

TEST_F(PluginTest, EachOfSeveralStreamsIsToldOfEveryChange) {
  register_with_kubelet();
  kubelet->watch();  // a second registration would do the same
  ASSERT_TRUE(kubelet->wait([this] { return kubelet->lists() == std::vector<std::size_t>{1, 1}; }));
  be_in("draining");
  EXPECT_TRUE(kubelet->wait([this] { return kubelet->lists() == std::vector<std::size_t>{2, 2}; }));
  kubelet->stop_watching();
  be_in("serving");
  kubelet->watch();
  EXPECT_TRUE(kubelet->wait_for_health(all_healthy));
}

TEST_F(PluginTest, AnAgentThatIsAwayForAWhileChangesNothing) {
  register_with_kubelet();
  answer = fail(ErrorCode::NotFound, "no firebreak agent at X", "start it");
  advance(std::chrono::seconds(29));
  EXPECT_EQ(kubelet->health(), all_healthy);
  advance(std::chrono::seconds(1));
  EXPECT_TRUE(kubelet->wait_for_health(none_healthy));
  be_in("serving");
  EXPECT_TRUE(kubelet->wait_for_health(all_healthy));
  EXPECT_EQ(kubelet->lists(), std::vector<std::size_t>{3});
  EXPECT_THAT(lines, testing::IsSupersetOf({"no firebreak agent at X (start it)",
                                            "0 of 4 seats are healthy: the agent does not answer"}));
}

TEST_F(PluginTest, BeforeThereIsAnAgentNothingIsOfferedNorGiven) {
  answer = fail(ErrorCode::NotFound, "no firebreak agent at X");
  start_kubelet();
  plugin->look();
  ASSERT_TRUE(kubelet->wait([this] { return kubelet->lists() == std::vector<std::size_t>{1}; }));
  EXPECT_THAT(kubelet->health(), IsEmpty());
  v1beta1::ContainerAllocateResponse response;
  EXPECT_EQ(kubelet->allocate({"a-1"}, response).error_code(), grpc::StatusCode::UNAVAILABLE);
  be_in("serving");
  EXPECT_TRUE(kubelet->wait_for_health(all_healthy));
}

TEST_F(PluginTest, AllocateGivesWhatCdiGives) {
  register_with_kubelet();
  v1beta1::ContainerAllocateResponse response;
  const grpc::Status status = kubelet->allocate({"b-2"}, response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const std::map<std::string, std::string> environment(response.envs().begin(), response.envs().end());
  EXPECT_EQ(environment,
            (std::map<std::string, std::string>{{"FIREBREAK_SOCKET", "/run/firebreak/tenants.sock"},
                                                {"LD_PRELOAD", seats::guard_path_in_container},
                                                {"CUDA_MPS_PIPE_DIRECTORY", "/run/firebreak/b/pipe"}}));
  std::vector<std::string> mounts;
  for (const auto& mount : response.mounts())
    mounts.push_back(mount.host_path() + ":" + mount.container_path() + (mount.read_only() ? ":ro" : ""));
  EXPECT_THAT(mounts, ElementsAre("/run/firebreak/tenants.sock:/run/firebreak/tenants.sock",
                                  "/usr/lib/guard.so:" + seats::mounted_guard("lib") + ":ro",
                                  "/usr/lib/guard.so:" + seats::mounted_guard("lib64") + ":ro",
                                  "/usr/lib/guard.so:" + seats::mounted_guard("lib/x86_64-linux-gnu") + ":ro",
                                  "/dev/shm:/dev/shm", "/run/firebreak/b/pipe:/run/firebreak/b/pipe"));
  EXPECT_TRUE(response.devices().empty());
}

TEST_F(PluginTest, ASeatThatThereIsNotIsAnErrorAndNothingMore) {
  register_with_kubelet();
  v1beta1::ContainerAllocateResponse response;
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"a-3"}, {"a-1", "c-1"}, {""}}) {
    const grpc::Status status = kubelet->allocate(wrong, response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
    EXPECT_THAT(status.error_message(), HasSubstr("there is no seat '" + wrong.back() + "'"));
    EXPECT_THAT(status.error_message(), testing::Not(HasSubstr("\n")));
  }
  EXPECT_EQ(kubelet->allocate({"a-1", "a-1"}, response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(response.envs().empty());
  EXPECT_TRUE(kubelet->allocate({"a-1"}, response).ok());
  EXPECT_EQ(kubelet->health(), all_healthy);
}

TEST_F(PluginTest, APairIsSpreadOverTwoDomains) {
  register_with_kubelet();
  std::vector<std::string> chosen;
  ASSERT_TRUE(kubelet->prefer({"a-1", "a-2", "b-1", "b-2"}, 2, chosen).ok());
  EXPECT_THAT(chosen, UnorderedElementsAre("a-1", "b-1"));
  chosen.clear();
  const grpc::Status status = kubelet->prefer({"a-1"}, 2, chosen);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "2 seats are wanted, and 1 are available");
  EXPECT_THAT(chosen, IsEmpty());
}

TEST_F(PluginTest, SaysWhatItOffersAndStartsNothingBeforeContainers) {
  register_with_kubelet();
  const auto stub = kubelet->plugin();
  grpc::ClientContext first, second;
  v1beta1::DevicePluginOptions options;
  ASSERT_TRUE(stub->GetDevicePluginOptions(&first, v1beta1::Empty(), &options).ok());
  EXPECT_TRUE(options.get_preferred_allocation_available());
  EXPECT_FALSE(options.pre_start_required());
  v1beta1::PreStartContainerResponse response;
  EXPECT_TRUE(stub->PreStartContainer(&second, v1beta1::PreStartContainerRequest(), &response).ok());
}

TEST_F(PluginTest, AKubeletThatRefusesIsAskedLessAndLessOftenAndItsReasonIsTold) {
  start_kubelet({.refuses = true});
  for (int i = 0; i < 100; ++i) plugin->look();
  EXPECT_EQ(kubelet->registrations().size(), 1u);
  for (int i = 0; i < 60; ++i) advance(std::chrono::seconds(1));
  EXPECT_THAT(kubelet->registrations().size(), testing::AllOf(Ge(5u), testing::Le(8u)));
  EXPECT_THAT(lines, Contains(HasSubstr("requested API version is not supported")).Times(1));
}

TEST_F(PluginTest, OneKubeletHasOnePlugin) {
  register_with_kubelet();
  const auto second = make_plugin();
  second->look();
  EXPECT_THAT(lines.back(), HasSubstr("another program serves at " + folder + "/firebreak.sock"));
  EXPECT_EQ(kubelet->registrations().size(), 1u);
  be_in("draining");
  EXPECT_TRUE(kubelet->wait_for_health(b_healthy)) << "the first is as it was";
}

TEST_F(PluginTest, ItsEndEndsItsStreams) {
  register_with_kubelet();
  plugin.reset();
  EXPECT_TRUE(kubelet->wait([this] { return kubelet->streams() == 0; }));
}

}  // namespace
}  // namespace firebreak::k8s
