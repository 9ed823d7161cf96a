// SPDX-License-Identifier: Apache-2.0
/// A tenant's process that does what it can to hold whoever looks at it (tests/doubles/os/test_hidden.cpp):
/// the agent answers all others meanwhile, and promotes their standbys, and so does the next agent. Nobody
/// has to end it for that.
#include <signal.h>

#include <string>

#include "ground/os/socket.h"
#include "shared/abi/wire.h"
#include "tests/failover/supervised_agent.h"

namespace firebreak::tests {
namespace {

constexpr Milliseconds long_enough{60'000};

class Hostile : public SupervisedAgent, public testing::WithParamInterface<const char*> {
 protected:
  /// 0: this machine does not let it.
  pid_t start_hidden(const std::string& how) {
    hidden_ = &start({FIREBREAK_TEST_HIDDEN, how});
    wait("the hidden process", [this] { return !hidden_->lines.empty(); });
    return std::stoi(hidden_->lines.front());
  }
  void end_hidden() {
    send(hidden_->actor->record().pid, SIGTERM);
    wait_for_end(*hidden_);
  }
  abi::Message ask(const abi::Message& question) {
    auto socket = os::connect(socket_, long_enough).value();
    const std::string text = abi::encode(question, 1);
    EXPECT_TRUE(socket.send(std::as_bytes(std::span(text)), {}, long_enough));
    const auto answer = socket.receive(long_enough).value();
    return abi::decode_letter({reinterpret_cast<const char*>(answer.bytes.data()), answer.bytes.size()})
        ->message;
  }
  /// Asked until it is so: after a pause each is looked at again.
  void wait_until_not_answered(pid_t hidden) {
    const auto wanted = nlohmann::json::array({hidden});
    ask_until("who is not answered", [&] {
      return nlohmann::json::parse(command({"status", "--json"}).output)["not_answered"] == wanted;
    });
  }

  Player* hidden_ = nullptr;
};

/// exec    in an exec() that never ends
/// lock    a thread of it holds the lock on its mappings for ever
/// file    its standard error and others of its descriptors are a file whose file system never answers
/// many    it has tens of thousands of descriptors that are called like the GPU's
TEST_P(Hostile, HoldsUpNobody) {
  const std::string how = GetParam();
  start_supervised({"--watchdog-s", "1"});
  Player& active = start_active();
  Player& standby = start_standby();
  wait_for_steps(3);
  const pid_t agent = agent_pid();
  const pid_t hidden = start_hidden(how);
  if (hidden == 0) GTEST_SKIP() << "nobody may mount here";
  const auto answer = ask(abi::Adopt{"hostile", abi::Role::Active, hidden});
  EXPECT_TRUE(std::holds_alternative<abi::Done>(answer));
  EXPECT_EQ(status_of("hostile")["active"]["pid"], hidden);
  if (how == "exec" || how == "lock") wait_until_not_answered(hidden);
  if (how == "many") wait("its number", [&] { return agent_->said("what it opens is held late"); });
  send(pid_of(tenant), SIGKILL);
  wait_for_end(active);
  wait_for_end(standby);
  EXPECT_EQ(standby.exit_status(), 0) << testing::PrintToString(standby.lines);
  expect_output_as_if_nothing_happened();
  EXPECT_EQ(agent_pid(), agent) << "its loop did not hang: " << testing::PrintToString(agent_->lines);
  EXPECT_FALSE(agent_->said("hangs")) << testing::PrintToString(agent_->lines);
  kill_agent();
  wait_for_next_agent();
  // When it started was never seen of the first: it may be anybody by now.
  const nlohmann::json kept = how == "exec" ? nlohmann::json(nullptr) : nlohmann::json(hidden);
  EXPECT_EQ(status_of("hostile")["active"]["pid"], kept) << testing::PrintToString(agent_->lines);
  EXPECT_FALSE(agent_->said("hangs")) << testing::PrintToString(agent_->lines);
  end_hidden();
}

INSTANTIATE_TEST_SUITE_P(Of, Hostile, testing::Values("exec", "lock", "file", "many"),
                         [](const auto& of) { return std::string(of.param); });

}  // namespace
}  // namespace firebreak::tests
