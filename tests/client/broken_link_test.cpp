// SPDX-License-Identifier: Apache-2.0
/// libfirebreak in processes of its own and the agent, over their sockets: links that break, and an agent
/// that stands still meanwhile.
#include <firebreak/firebreak.h>
#include <sys/socket.h>

#include "shared/link/status_view.h"
#include "tests/doubles/agent/agent_test_support.h"

namespace firebreak::agent {
namespace {

/// One process of the tenant.
class ClientMember {
 public:
  ClientMember(os::Kernel& kernel, const std::string& socket_path, const std::string& gpu, const char* role,
               const char* how = "") {
    auto [ours, theirs] = std::move(os::socket_pair().value());
    os::SpawnRequest request;
    request.command = {FIREBREAK_CLIENT_MEMBER, how};
    request.inherited = {{theirs.fd().get(), 3}};
    request.environment = {{"FIREBREAK_SOCKET", socket_path},
                           {"FIREBREAK_TENANT", "llm"},
                           {"FIREBREAK_ROLE", role},
                           {"FIREBREAK_SOFTGPU_DIR", gpu},
                           {"FIREBREAK_CUDA_LIBRARY", FIREBREAK_SOFTGPU_LIBRARY}};
    pid = kernel.spawn(request).value();
    control_.emplace(std::move(ours));
  }

  std::optional<fb_status> answer() {
    const auto word = control_->receive(Milliseconds(0));
    if (!word) return std::nullopt;
    next_step = static_cast<int>(word->bytes.at(1));
    return static_cast<fb_status>(word->bytes.at(0));
  }
  void ask() {
    const std::byte question{1};
    ASSERT_TRUE(control_->send(std::span(&question, 1), {}, Milliseconds(5000)).has_value());
  }
  void end(os::Kernel& kernel) {
    control_.reset();
    while (!kernel.try_wait(pid).value()) {
    }
  }

  pid_t pid = 0;
  int next_step = 0;  ///< as it answered last

 private:
  std::optional<os::Socket> control_;
};

struct BrokenLink : AgentTest {
  os::TemporaryDirectory gpu = std::move(os::TemporaryDirectory::create().value());
  ClientMember active{kernel, path, gpu.path(), "active"};
  std::optional<ClientMember> standby;

  void SetUp() override {
    ASSERT_EQ(answer_of(active), FB_OK);
    standby.emplace(kernel, path, gpu.path(), "standby");
    ASSERT_EQ(answer_of(*standby), FB_OK);
    ASSERT_EQ(status().standby_state, pair::Standby::Ready);
  }
  link::TenantView status() { return *link::parse_status(agent->status_json()).tenant("llm"); }
  fb_status answer_of(ClientMember& member) {
    std::optional<fb_status> answer;
    while (!(answer = member.answer())) loop->run_once(Milliseconds(10));
    return *answer;
  }
  fb_status waits(ClientMember& member) {
    member.ask();
    return answer_of(member);
  }
  /// The agent's end of what that process is connected by.
  void break_link_of(pid_t pid) {
    int broken = 0;
    for (int number = 3; number < 256; ++number) {
      ucred peer{};
      socklen_t size = sizeof peer;
      if (::getsockopt(number, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid != pid) continue;
      ::shutdown(number, SHUT_RDWR);
      ++broken;
    }
    ASSERT_GT(broken, 0);
  }
  void until_standby_is(pair::Standby state) {
    while (status().standby_state != state) loop->run_once(Milliseconds(10));
  }
};

TEST_F(BrokenLink, AStandbyStandsByAgainAndTakesOver) {
  for (int i = 0; i < 3; ++i) {
    break_link_of(standby->pid);
    until_standby_is(pair::Standby::None);
    until_standby_is(pair::Standby::Ready);
    EXPECT_EQ(waits(*standby), FB_ERROR_TIMEOUT);
  }
  active.end(kernel);
  detectors.callbacks.on_exit(active.pid);
  EXPECT_EQ(waits(*standby), FB_OK);
  EXPECT_EQ(status().epoch, 1u);
}

TEST_F(BrokenLink, AnAgentThatStoodStillMeanwhileHasItsStandbyBack) {
  break_link_of(standby->pid);
  // Nobody serves the agent's socket: what comes there waits.
  standby->ask();
  std::optional<fb_status> answer;
  while (!(answer = standby->answer())) {
  }
  EXPECT_EQ(*answer, FB_ERROR_TIMEOUT);
  until_standby_is(pair::Standby::None);
  until_standby_is(pair::Standby::Ready);
}

TEST_F(BrokenLink, WhoComesBackToALostTenantIsToldAndTheNextActiveIsAlone) {
  break_link_of(standby->pid);
  until_standby_is(pair::Standby::None);
  active.end(kernel);
  detectors.callbacks.on_exit(active.pid);
  ASSERT_EQ(status().phase, pair::Phase::Lost);
  fb_status told = FB_ERROR_TIMEOUT;
  while (told == FB_ERROR_TIMEOUT) told = waits(*standby);
  EXPECT_EQ(told, FB_ERROR_REFUSED);
  ClientMember next{kernel, path, gpu.path(), "active"};
  EXPECT_EQ(answer_of(next), FB_OK);
  EXPECT_EQ(status().epoch, 1u);
  EXPECT_EQ(waits(*standby), FB_ERROR_REFUSED) << "that epoch is not its own";
}

TEST_F(BrokenLink, StartsThatFailDestroyNothingHoweverManyThereAre) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the undefined-behaviour sanitizer needs descriptors to look at an object's type";
#endif
  standby->end(kernel);
  detectors.callbacks.on_exit(standby->pid);
  active.end(kernel);
  detectors.callbacks.on_exit(active.pid);
  for (int i = 0; i < 7; ++i) {
    ASSERT_EQ(status().phase, pair::Phase::Lost);
    ClientMember failing{kernel, path, gpu.path(), "active", "starved"};
    EXPECT_NE(answer_of(failing), FB_OK) << "there is no descriptor for the shared page";
    failing.end(kernel);
    detectors.callbacks.on_exit(failing.pid);
  }
  ClientMember next{kernel, path, gpu.path(), "active"};
  EXPECT_EQ(answer_of(next), FB_OK);
  EXPECT_EQ(waits(next), FB_OK);
  EXPECT_EQ(next.next_step, 1) << "the step that was committed before";
}

}  // namespace
}  // namespace firebreak::agent
