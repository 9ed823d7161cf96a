// SPDX-License-Identifier: Apache-2.0
/// `firebreak run -- PROGRAM` gives a program that knows nothing of us all that works for it: guard ranges, a
/// spare driver instance, a parked domain. All of it for real, on the software GPU.
#include <algorithm>
#include <fstream>
#include <regex>
#include <set>

#include "tests/parking/parked_domain.h"

namespace firebreak::tests {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

class Everything : public ParkedDomainWhole {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "a sanitizer's runtime wants to be the first library";
#endif
    environment_.emplace_back("FIREBREAK_WITHOUT", "");
  }
  void start_with_spares() {
    environment_.emplace_back("FIREBREAK_LOG", "info");
    start_supervised({"--park-s", long_enough, "--spares"});
    wait_for_parking("ready");
  }
  /// It computes, and stores 16 GiB behind its memory once it is told to.
  Player& start_strayer() {
    Player& strayer = start_tenant(
        "strayer", {program("firebreak-checker"), "--until", told_to_stray_, "--stray-gib", "16"});
    wait("its first kernel", [&] { return strayer.said("working"); });
    wait_for_status("strayer", has_everything);
    return strayer;
  }
  void expect_stray(Player& strayer) {
    std::ofstream(told_to_stray_) << "stray";
    wait("the agent's word", [&] { return agent_->said("contained stray of tenant strayer"); });
    wait_for_end(strayer);
    EXPECT_FALSE(strayer.said("its stray: ")) << testing::PrintToString(strayer.lines);
  }
  static bool has_everything(const nlohmann::json& tenant) {
    return tenant["guard"].is_object() && tenant["guard"]["state"] == "on" && tenant["spare"].is_object() &&
           tenant["spare"]["state"] == "protected";
  }
  std::string environment_of(const std::string& name) {
    std::string all =
        kernel_.read_memory_file("/proc/" + std::to_string(pid_of(name)) + "/environ").value_or("");
    std::ranges::replace(all, '\0', '\n');
    return all;
  }

  /// A checker that comes to CUDA once `told_to_come_` is there.
  Player& start_late() {
    const std::string script = "until test -e \"$0\"; do sleep 0.02; done; exec \"$@\"";
    std::vector<std::string> command = {"sh", "-c", script, told_to_come_};
    for (std::string& word : checker_command()) command.push_back(std::move(word));
    Player& late = start_tenant("late", std::move(command));
    wait_until_adopted("late");
    EXPECT_EQ(status_of("late")["active"]["domain"], "a");
    return late;
  }
  /// Of a program that nobody has started. Returns its exit status.
  int fault_in_the_domain_for_anchors() {
    Sandbox::Environment all = environment_;
    all.emplace_back("CUDA_MPS_PIPE_DIRECTORY", sandbox_.file("d/anchor/pipe"));
    return sandbox_.run("firebreak-lab", {"inject", "misaligned-load"}, all).status.exit_code;
  }

  /// The faults that the agent's log tells of.
  std::set<std::string> ids_in_log() const {
    const std::regex form("\\bincident ([0-9a-z]{7})\\b");
    std::set<std::string> ids;
    for (const std::string& line : agent_->lines) {
      std::smatch found;
      if (std::regex_search(line, found, form)) ids.insert(found[1]);
    }
    return ids;
  }

  std::string told_to_stray_ = sandbox_.file("stray");
  std::string told_to_come_ = sandbox_.file("come");
};

TEST_F(Everything, IsWhatAProgramHasThatComesAlone) {
  start_with_spares();
  start_strayer();
  EXPECT_THAT(environment_of("strayer"), HasSubstr("CUDA_COREDUMP_FILE"));
  EXPECT_EQ(parking_state(), "ready");
}

// Nobody says that two instances work with each driver, so that is tried, once a boot and driver.
TEST_F(Everything, SparesAreTriedBeforeAnybodyGetsOne) {
  start_with_spares();
  const auto status = nlohmann::json::parse(command({"status", "--json"}).output, nullptr, false);
  EXPECT_EQ(status["spare_test"], "works");
  EXPECT_THAT(sandbox_.run("firebreak", {"doctor"}, environment_).output,
              HasSubstr("(firebreakd --spares): work on this kernel and driver"));
}

// A trial is a fault on their GPU, and takes longer than they may be without an agent.
TEST_F(Everything, SparesAreNotTriedWhereTenantsWaitForTheNextAgent) {
  start_with_spares();
  start_checker("checker");
  ASSERT_TRUE(os::remove_file(sandbox_.file("firebreak/spares-software-GPU")));
  kill_agent();
  wait_for_next_agent();
  const auto status = nlohmann::json::parse(command({"status", "--json"}).output, nullptr, false);
  EXPECT_THAT(status["spare_test"].get<std::string>(), HasSubstr("not tested"));
  wait_for_status("checker", [](const auto& tenant) { return tenant["spare"].is_object(); });
}

TEST_F(Everything, WhereADriverHasOneInstanceAProgramRunsWithoutASpare) {
  environment_.emplace_back("FIREBREAK_SOFTGPU_ONE_INSTANCE", "1");
  start_with_spares();
  const auto status = nlohmann::json::parse(command({"status", "--json"}).output, nullptr, false);
  EXPECT_THAT(status["spare_test"].get<std::string>(), HasSubstr("fails: a program with a spare: cuInit"));
  EXPECT_TRUE(agent_->said("no program gets a spare driver instance: fails"));
  Player& checker = start_tenant("checker", checker_command());
  wait("its first kernel", [&] { return checker.said("working"); });
  wait_until_adopted("checker");
  EXPECT_THAT(environment_of("checker"), Not(HasSubstr("FIREBREAK_SPARE=")));
  let_them_end();
  expect_right(checker);
  const std::string socket = sandbox_.file("d/agent.sock");
  const auto refused = sandbox_.run(
      "firebreak", {"run", "--socket", socket, "--name", "who", "--spare", "--", "true"}, environment_);
  EXPECT_NE(refused.status.exit_code, 0);
  EXPECT_THAT(refused.output, HasSubstr("spare driver instances do not work here: fails"));
}

TEST_F(Everything, WhoLeavesAParkedDomainIsGuardedAndHeardInTheNextOne) {
  start_with_spares();
  Player& strayer = start_strayer();
  EXPECT_EQ(status_of("strayer")["active"]["domain"], "a");
  Player& rogue = start_rogue("misaligned-load");
  fault(rogue);
  wait_for_status("strayer", [](const auto& tenant) { return tenant["active"]["domain"] == "b"; });
  wait_for_status("strayer", has_everything);
  Player& neighbour = start_tenant("neighbour", checker_command());
  wait("its first kernel", [&] { return neighbour.said("working"); });
  expect_stray(strayer);
  let_them_end();
  expect_right(neighbour);
  wait_for_end(rogue);
}

// Each of its moves makes an instance with an address space of its own.
TEST_F(Everything, AStrayIsHeardAfterManyMoves) {
  start_with_spares();
  Player& strayer = start_strayer();
  for (const std::string next : {"b", "a", "b", "a"}) {
    const std::vector<std::string> in_b = {"--standby"};
    Player& rogue =
        start_tenant("rogue-for-" + next, {program("firebreak-lab"), "inject", "--wait", "misaligned-load"},
                     next == "a" ? in_b : std::vector<std::string>());
    wait("the faulter", [&] { return rogue.said("prepared"); });
    rogue.actor->tell("go");
    wait_for_status("strayer", [&](const auto& tenant) { return tenant["active"]["domain"] == next; });
    wait_for_end(rogue);
    wait_for_status("strayer", has_everything);
  }
  expect_stray(strayer);
}

/// It waits to be told, as an interpreter that reads its libraries, and then comes to CUDA.
TEST_F(Everything, WhoHasNotComeToCudaHoldsNoParkedDomain) {
  start_with_spares();
  Player& late = start_late();
  Player& rogue = start_rogue("misaligned-load");
  fault(rogue);
  wait_for_end(rogue);
  wait_for_parking("ready");
  std::ofstream(told_to_come_) << "come";
  wait_for_status("late", has_everything);
  let_them_end();
  expect_right(late);
  EXPECT_FALSE(agent_->said("never will")) << "nobody waited for it";
}

TEST_F(Everything, WhoComesWhileItsDomainIsHeldWorksInTheOtherOne) {
  start_with_spares();
  Player& late = start_late();
  Player& staying = start_tenant("staying", checker_command(), {"--without", "spare"});
  wait("its first kernel", [&] { return staying.said("working"); });
  EXPECT_EQ(status_of("staying")["active"]["domain"], "a");
  Player& rogue = start_rogue("misaligned-load");
  fault(rogue);
  EXPECT_EQ(parking_state(), "held");
  std::ofstream(told_to_come_) << "come";
  wait_for_status("late", [](const auto& tenant) { return tenant["active"]["domain"] == "b"; });
  wait("its first kernel", [&] { return late.said("working"); });
  EXPECT_EQ(parking_state(), "held");
  let_them_end();
  expect_right(late);
  expect_right(staying);
  wait_for_end(rogue);
  wait_for_parking("ready");
  EXPECT_THAT(ids_in_log(), SizeIs(1)) << "what comes when the domain falls is of it";
}

// Where the file stayed that says so, nobody would have a spare there any more.
TEST_F(Everything, AfterAnAgentThatDiedInAParkItsDomainTakesWhoComes) {
  start_with_spares();
  const std::string mark = sandbox_.file("d/a/pipe/firebreak-parked");
  Player& rogue = start_rogue("misaligned-load");
  Player& staying = start_tenant("staying", checker_command(), {"--without", "spare"});
  wait("its first kernel", [&] { return staying.said("working"); });
  fault(rogue);
  EXPECT_TRUE(std::filesystem::exists(mark));
  kill_agent();
  wait_for_next_agent();
  EXPECT_FALSE(std::filesystem::exists(mark));
  wait_for_end(rogue);
  wait_for_end(staying);
  wait_for_parking("ready");
  Player& late = start_checker("late");
  wait_for_status("late", has_everything);
  let_them_end();
  expect_right(late);
}

// As root in a container might, that was given the directory.
TEST_F(Everything, AFileThatSomebodyElseHasPutThereKeepsNobodyFromASpare) {
  start_with_spares();
  std::filesystem::create_directories(sandbox_.file("d/a/pipe/firebreak-parked/full"));
  std::ofstream(sandbox_.file("d/b/pipe/firebreak-parked")) << "forged";
  Player& checker = start_checker("checker");
  wait_for_status("checker", has_everything);
  Player& rogue = start_rogue("misaligned-load");
  fault(rogue);
  wait("the agent's word", [&] { return agent_->said("cannot be made: who comes while it is parked"); });
  wait_for_status("checker", [](const auto& tenant) { return tenant["active"]["domain"] == "b"; });
  wait_for_end(rogue);
  wait_for_status("checker", has_everything);
  let_them_end();
  expect_right(checker);
}

/// Who works there is a program that our library did not get into, say.
TEST_F(Everything, TheDomainForAnchorsIsMadeAnewAfterAFaultAndNobodyIsHit) {
  start_with_spares();
  Player& checker = start_checker("old");
  wait_for_status("old", has_everything);
  const auto anchors = [&] {
    const auto all = nlohmann::json::parse(command({"status", "--json"}).output, nullptr, false);
    return all.is_object() && all["anchors"].size() == 1 ? all["anchors"][0] : nlohmann::json();
  };
  EXPECT_EQ(anchors()["name"], "anchor");
  EXPECT_EQ(anchors()["state"], "serving");
  EXPECT_NE(fault_in_the_domain_for_anchors(), 0);
  ask_until("the domain for anchors",
            [&] { return anchors()["state"] == "serving" && anchors()["server_restarts"] != 0; });
  EXPECT_FALSE(agent_->said("has begun its core dump")) << "nobody works where the fault was";
  EXPECT_EQ(parking_state(), "ready");
  Player& newer = start_checker("new");
  wait_for_status("new", has_everything);
  Player& rogue = start_rogue("misaligned-load");
  fault(rogue);
  wait_for_end(rogue);
  wait_for_status("old", has_everything);
  let_them_end();
  expect_right(checker);
  expect_right(newer);
}

TEST_F(Everything, WithoutNamesWhatAProgramDoesNotHave) {
  start_with_spares();
  Player& plain = start_tenant("plain", checker_command(), {"--without", "guard,spare,parking"});
  wait("its first kernel", [&] { return plain.said("working"); });
  const std::string its = environment_of("plain");
  for (const char* const variable : {"LD_PRELOAD", "FIREBREAK_SPARE", "CUDA_COREDUMP_FILE"})
    EXPECT_THAT(its, Not(HasSubstr(variable)));
  Player& unparked = start_tenant("unparked", checker_command(), {"--without", "guard,parking"});
  wait("its first kernel", [&] { return unparked.said("working"); });
  EXPECT_THAT(environment_of("unparked"), HasSubstr("FIREBREAK_SPARE="));
  EXPECT_THAT(environment_of("unparked"), Not(HasSubstr("FIREBREAK_SPARE_DUMPS")))
      << "nobody reads these pipes";
  Player& one = start_tenant("one", checker_command(), {"--without", "guard"});
  wait_for_status("one", [](const auto& tenant) {
    return tenant["spare"].is_object() && tenant["spare"]["state"] == "protected";
  });
  EXPECT_EQ(status_of("one")["guard"]["state"], "none");
  Player& other = start_tenant("other", checker_command(), {"--without", "spare"});
  wait_for_status("other", [](const auto& tenant) {
    return tenant["guard"].is_object() && tenant["guard"]["state"] == "on";
  });
  EXPECT_TRUE(status_of("other")["spare"].is_null());
  const auto refused = command({"run", "--without", "brakes", "--", "true"});
  EXPECT_NE(refused.status.exit_code, 0);
  EXPECT_THAT(refused.output, HasSubstr("brakes"));
  for (const char* const part : {"guard", "spare"}) {
    const std::string with = std::string("--") + part;
    const auto torn = command({"run", with, "--without", part, "--", "true"});
    EXPECT_NE(torn.status.exit_code, 0);
    EXPECT_THAT(torn.output, HasSubstr(with + " and --without " + part + " contradict each other"));
  }
  let_them_end();
  for (Player* const each : {&plain, &unparked, &one, &other}) expect_right(*each);
}

TEST_F(Everything, WhereTheAgentGivesNoSparesAProgramRunsWithoutOne) {
  start_parking();
  Player& one = start_tenant("one", checker_command());
  wait_for_status("one", [](const auto& tenant) {
    return tenant["guard"].is_object() && tenant["guard"]["state"] == "on";
  });
  EXPECT_TRUE(status_of("one")["spare"].is_null());
  Player& wanting = start_tenant("wanting", checker_command(), {"--spare"});
  wait_for_end(wanting);
  EXPECT_NE(wanting.exit_status(), 0) << "who asks for one is told";
  let_them_end();
  expect_right(one);
}

}  // namespace
}  // namespace firebreak::tests
