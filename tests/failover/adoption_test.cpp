// SPDX-License-Identifier: Apache-2.0
/// The agent is killed after it has said where a process is to run, and before it has adopted that: here the
/// test speaks for both agents.
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "ground/os/socket.h"
#include "shared/abi/wire.h"
#include "tests/guard/agent_on_stage.h"

namespace firebreak::tests {
namespace {

constexpr Milliseconds patience{60'000};
constexpr std::uint32_t returns_ms = 60'000;
/// What `firebreak run` says where it fails itself.
constexpr int cannot_run = 125;

class Adoption : public AgentOnStage {
 protected:
  /// One agent, and the connection of who asks it.
  struct Agent {
    os::Listener listener;
    os::Socket asker;
  };
  static os::Listener listen(const std::string& path) {
    return std::move(os::Listener::listen(path, os::SocketAccess::Owner).value());
  }
  void SetUp() override { ASSERT_TRUE(os::make_directories(sandbox_.file("d"))); }
  /// `firebreak run`, which asks where its process is to run.
  void start_asking(std::vector<std::string> program, std::vector<std::string> run_arguments = {}) {
    os::Listener listener = listen(socket_);
    run_ = &start_tenant("rogue", std::move(program), std::move(run_arguments));
    os::Socket asker = std::move(listener.accept(patience).value());
    agent_now_.emplace(Agent{std::move(listener), std::move(asker)});
    ASSERT_TRUE(std::holds_alternative<abi::Place>(question()));
  }
  /// And has been told, and asks that its process is adopted.
  void start_placed(std::vector<std::string> program, std::uint32_t agent_returns_ms) {
    start_asking(std::move(program));
    place(agent_returns_ms);
  }
  void place(std::uint32_t agent_returns_ms) {
    answer(abi::Placed{{{"FIREBREAK_ROLE", "active"}}, agent_returns_ms});
    asked_ = std::get<abi::Adopt>(question());
  }
  void kill_it() { agent_now_.reset(); }
  /// And is asked.
  void start_next_agent() {
    os::Listener listener = listen(socket_);
    auto asker = listener.accept(patience);
    ASSERT_TRUE(asker) << "nobody asks: " << run_->actor->record().last_words;
    agent_now_.emplace(Agent{std::move(listener), std::move(*asker)});
  }
  abi::Message question() {
    const auto received = agent_now_->asker.receive(patience).value();
    const auto letter =
        abi::decode_letter({reinterpret_cast<const char*>(received.bytes.data()), received.bytes.size()});
    number_ = letter->number;
    return letter->message;
  }
  void answer(const abi::Message& message) {
    const std::string text = abi::encode(message, number_);
    ASSERT_TRUE(agent_now_->asker.send(std::as_bytes(std::span(text)), {}, patience));
  }

  std::optional<Agent> agent_now_;
  Player* run_ = nullptr;
  abi::Adopt asked_;

 private:
  std::uint64_t number_ = 0;
};

TEST_F(Adoption, IsAskedOfTheNextAgentAndTheProgramBegins) {
  start_placed({"sh", "-c", "head -n 1; exit 7"}, returns_ms);
  for (int killed = 0; killed < 2; ++killed) {
    kill_it();
    start_next_agent();
    const auto again = std::get<abi::Adopt>(question());
    EXPECT_EQ(again.tenant, asked_.tenant);
    EXPECT_EQ(again.pid, asked_.pid);
  }
  answer(abi::Done{});
  run_->actor->tell("go");
  wait_for_end(*run_);
  EXPECT_EQ(run_->exit_status(), 7);
}

// One that was taken over, and `firebreak run` may be root's.
TEST_F(Adoption, AnAgentThatWantsALibraryLoadedGetsNoProgramStarted) {
  const std::string begun = sandbox_.file("begun");
  start_asking({"touch", begun});
  answer(abi::Placed{{{"FIREBREAK_ROLE", "active"}, {"LD_AUDIT", "/tmp/library.so"}}, returns_ms});
  wait_for_end(*run_);
  EXPECT_EQ(run_->exit_status(), cannot_run);
  EXPECT_THAT(run_->actor->record().last_words, testing::HasSubstr("LD_AUDIT"));
  EXPECT_FALSE(std::filesystem::exists(begun));
}

TEST_F(Adoption, NothingBeginsBeforeTheAgentFollowsIt) {
  const std::string begun = sandbox_.file("begun");
  start_placed({"touch", begun}, returns_ms);
  // It stands before its program, and is to be adopted as what it will be.
  const std::string own = "/proc/" + std::to_string(asked_.pid) + "/exe";
  EXPECT_EQ(kernel_.read_link(own).value(), program("firebreak"));
  EXPECT_FALSE(std::filesystem::exists(begun));
  answer(abi::Done{});
  wait_for_end(*run_);
  EXPECT_EQ(run_->exit_status(), 0);
  EXPECT_TRUE(std::filesystem::exists(begun));
}

TEST_F(Adoption, AProgramThatCannotRunIsSaidOnceItIsAdopted) {
  const std::string script = sandbox_.file("script");
  std::ofstream(script) << "#!/no/such/program\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  start_placed({script}, returns_ms);
  answer(abi::Done{});
  wait_for_end(*run_);
  EXPECT_EQ(run_->exit_status(), 127);
  EXPECT_THAT(run_->actor->record().last_words, testing::HasSubstr("start " + script));
}

TEST_F(Adoption, ARefusalOfTheNextAgentIsFinal) {
  start_placed({"sleep", "1000"}, returns_ms);
  kill_it();
  start_next_agent();
  ASSERT_TRUE(std::holds_alternative<abi::Adopt>(question()));
  answer(abi::Refused{"there is one already"});
  wait_for_end(*run_);
  EXPECT_EQ(run_->exit_status(), cannot_run);
  EXPECT_THAT(run_->actor->record().last_words, testing::HasSubstr("there is one already"));
}

TEST_F(Adoption, WhoEndsMeanwhileNeedsNone) {
  start_placed({"sleep", "1000"}, returns_ms);
  kill_it();
  send(static_cast<pid_t>(asked_.pid), SIGKILL);
  wait_for_end(*run_);
  EXPECT_EQ(run_->exit_status(), 128 + SIGKILL);
}

TEST_F(Adoption, WhoWaitsForTheNextAgentHeedsSignals) {
  for (const int signal : {SIGINT, SIGTERM}) {
    start_placed({"sh", "-c", "trap 'exit 9' INT TERM; echo up; while :; do sleep 0.05; done"}, returns_ms);
    kill_it();
    run_->actor->signal(signal);
    wait_for_end(*run_);
    EXPECT_EQ(run_->exit_status(), 128 + signal) << "its program has not begun";
    EXPECT_FALSE(run_->said("up"));
  }
}

TEST_F(Adoption, WhereNoDomainIsFreeYetItIsAskedForAgain) {
  start_asking({"sh", "-c", "exit 7"});
  for (const char* const why : {"a is draining", "a is restarting"}) {
    answer(abi::Refused{why, false, true});
    ASSERT_TRUE(std::holds_alternative<abi::Place>(question()));
  }
  place(returns_ms);
  answer(abi::Done{});
  wait_for_end(*run_);
  EXPECT_EQ(run_->exit_status(), 7);
  const std::string said = run_->actor->record().last_words;
  EXPECT_THAT(said, testing::HasSubstr("firebreak: waits: a is draining"));
  EXPECT_THAT(said, testing::Not(testing::HasSubstr("restarting"))) << "one line is enough";
}

TEST_F(Adoption, WhoIsNotToWaitForADomainIsTold) {
  start_asking({"sleep", "1000"}, {"--wait-s", "0"});
  answer(abi::Refused{"a is draining", false, true});
  wait_for_end(*run_);
  EXPECT_EQ(run_->exit_status(), cannot_run);
  const std::string said = run_->actor->record().last_words;
  EXPECT_THAT(said, testing::HasSubstr("a is draining"));
  EXPECT_THAT(said, testing::Not(testing::HasSubstr("waits")));
}

TEST_F(Adoption, WhoWaitsForADomainHeedsSignals) {
  for (const int signal : {SIGINT, SIGTERM}) {
    start_asking({"sleep", "1000"});
    answer(abi::Refused{"a is draining", false, true});
    ASSERT_TRUE(std::holds_alternative<abi::Place>(question()));
    run_->actor->signal(signal);
    wait_for_end(*run_);
    EXPECT_EQ(run_->exit_status(), 128 + signal);
    kill_it();
  }
}

TEST_F(Adoption, WhereNoAgentWillComeTheProgramIsNotLeftAlone) {
  start_placed({"sleep", "1000"}, 0);
  kill_it();
  wait_for_end(*run_);
  EXPECT_EQ(run_->exit_status(), cannot_run);
  EXPECT_THAT(run_->actor->record().last_words, testing::HasSubstr("the firebreak agent is gone"));
}

}  // namespace
}  // namespace firebreak::tests
