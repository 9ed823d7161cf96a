// SPDX-License-Identifier: Apache-2.0
/// A tenant's process at which no look ends (src/os/test_hidden.cpp): the agent answers all others meanwhile,
/// and promotes their standbys. Nobody has to end it for that.
#include <signal.h>

#include "abi/wire.h"
#include "os/socket.h"
#include "tests/failover/supervised_agent.h"

namespace firebreak::tests {
namespace {

constexpr Milliseconds long_enough{60'000};

class Hostile : public SupervisedAgent {
 protected:
  /// 0: this machine does not let it.
  pid_t start_hidden() {
    hidden_ = &start({FIREBREAK_TEST_HIDDEN, "exec"});
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

  Player* hidden_ = nullptr;
};

/// It fails: readlink() in /proc/PID/fd, and following such a link, wait for an exec() as well (Linux 6.18),
/// and are the loop's own still (docs/security.md).
TEST_F(Hostile, DISABLED_AProcessThatCannotBeLookedAtHoldsUpNobody) {
  start_supervised({"--watchdog-s", "1"});
  Player& active = start_active();
  Player& standby = start_standby();
  wait_for_steps(3);
  const pid_t agent = agent_pid();
  const pid_t hidden = start_hidden();
  if (hidden == 0) GTEST_SKIP() << "nobody may mount here";
  const auto answer = ask(abi::Adopt{"hostile", abi::Role::Active, hidden});
  EXPECT_TRUE(std::holds_alternative<abi::Done>(answer));
  wait("the agent's word", [&] { return agent_->said("does not let itself be looked at"); });
  EXPECT_EQ(status_of("hostile")["active"]["pid"], hidden);
  const auto status = nlohmann::json::parse(command({"status", "--json"}).output);
  EXPECT_EQ(status["not_answered"], nlohmann::json::array({hidden}));
  send(pid_of(tenant), SIGKILL);
  wait_for_end(active);
  wait_for_end(standby);
  EXPECT_EQ(standby.exit_status(), 0) << testing::PrintToString(standby.lines);
  expect_output_as_if_nothing_happened();
  EXPECT_EQ(agent_pid(), agent) << "its loop did not hang: " << testing::PrintToString(agent_->lines);
  end_hidden();
}

}  // namespace
}  // namespace firebreak::tests
