// SPDX-License-Identifier: Apache-2.0
/// An exception of one tenant's kernel in a domain that is parked: unmodified tenants beside it compare every
/// word that they compute. All of it for real, on the software GPU.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "tests/parking/parked_domain.h"

namespace firebreak::tests {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

bool is_trap(const std::string& kind) { return kind == "trap" || kind == "breakpoint"; }

class EachKind : public ParkedDomainWhole, public testing::WithParamInterface<const char*> {};

TEST_P(EachKind, EverybodyElseFinishesAndOnlyTheFaulterGetsNothing) {
  start_parking();
  Player& one = start_checker("one");
  Player& other = start_checker("other");
  Player& rogue = start_rogue(GetParam());
  const pid_t culprit = pid_of("rogue");
  fault(rogue);
  const nlohmann::json held = domain();
  EXPECT_EQ(held["parking"]["state"], "held");
  EXPECT_EQ(held["parking"]["culprits"], nlohmann::json({culprit}));
  EXPECT_THAT(held["parking"]["not_in_mode"], IsEmpty());
  EXPECT_FALSE(rogue.said("answered")) << "its call does not return with a result";
  let_them_end();
  expect_right(one);
  expect_right(other);
  expect_to_have_got_nothing(rogue, culprit, is_trap(GetParam()));
  wait_for_parking("ready");  // the domain is back
  expect_right(start_tenant("newcomer", checker_command()));
  const nlohmann::json faults = faults_that_are_over();
  ASSERT_EQ(faults.size(), 1u);
  const std::string listed = command({"report"}).output;
  EXPECT_THAT(listed, HasSubstr("rogue-" + std::to_string(culprit)));
  const auto all = nlohmann::json::parse(command({"report", "--json"}).output, nullptr, false);
  ASSERT_EQ(all.size(), 1u) << listed;
  EXPECT_EQ(all[0]["culprit"]["pid"], culprit);
  EXPECT_GT(all[0]["dump_bytes"], 0);
  EXPECT_EQ(all[0]["fault"], faults[0]["id"]);
  EXPECT_EQ(all[0]["affected"].size(), 2u);
  EXPECT_EQ(faults[0]["touched"].size(), 2u);
  EXPECT_THAT(command({"logs", "one"}).output, HasSubstr("a neighbour (rogue) faulted: "));
  EXPECT_THAT(command({"logs", "rogue"}).output, HasSubstr("it faulted: "));
  const std::string told = command({"report", all[0]["id"]}).output;
  EXPECT_THAT(told, HasSubstr(all[0]["exception"]["type"].get<std::string>()));
  EXPECT_THAT(told, HasSubstr("the domain has fallen"));
  EXPECT_THAT(told, HasSubstr(".cudacore ("));
}

TEST_F(ParkedDomainWhole, AReportThatIsNotThereIsSaid) {
  const auto asked = command({"report", "nobody"});
  EXPECT_EQ(asked.status.exit_code, 1);
  EXPECT_THAT(asked.output, HasSubstr("there is no report 'nobody'"));
  EXPECT_THAT(command({"report"}).output, HasSubstr("no exception has been parked"));
  EXPECT_EQ(command({"report", "../agent"}).status.exit_code, 1);
}

INSTANTIATE_TEST_SUITE_P(OfTheCatalogue, EachKind,
                         testing::Values("misaligned-load", "trap", "shared-out-of-bounds",
                                         "non-canonical-address", "stack-overflow", "illegal-instruction",
                                         "local-out-of-bounds", "breakpoint", "device-assert"),
                         [](const auto& kind) {
                           std::string name = kind.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST_F(ParkedDomainWhole, WithoutParkingEverybodyFalls) {
  start_supervised();
  Player& one = start_checker("one");
  Player& rogue = start_rogue("misaligned-load");
  rogue.actor->tell("go");
  expect_to_have_fallen(one);
  EXPECT_TRUE(domain()["parking"].is_null());
}

TEST_F(ParkedDomainWhole, ATenantWithAStandbyIsHandedOverWithNoStepLostAndThenTheDomainFalls) {
  start_parking();
  start_active();
  start_standby();
  const pid_t before = pid_of(tenant);
  Player& rogue = start_rogue("misaligned-load");
  wait_for_steps(2);
  fault(rogue);
  wait_for_status(tenant, [before](const auto& now) {
    return now["phase"] == "serving" && now["active"].is_object() && now["active"]["pid"] != before;
  });
  wait_for_end(rogue);  // nobody is left but the faulter
  EXPECT_FALSE(agent_->said("promoted")) << "it was handed over";
  let_them_end();
  wait_until_unknown();
  expect_output_as_if_nothing_happened();
}

TEST_F(ParkedDomainWhole, AtTheLimitWhoCouldNotLeaveFallsAndWasTold) {
  start_parking("1");
  Player& one = start_checker("one");
  Player& rogue = start_rogue("trap");
  fault(rogue);
  EXPECT_TRUE(
      agent_->said("tenant one cannot leave domain a, since it has no standby that is ready: it has 1 s"));
  expect_to_have_fallen(one);
  wait_for_end(rogue);
  wait_for_parking("ready");
}

// As PyTorch's driver does at times (H200): it stood still for 28 s, and would have until the limit.
class NeverDumps : public ParkedDomainWhole, public testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(After, NeverDumps, testing::Values("trap", "device-assert"),
                         [](const auto& kind) { return kind.index == 0 ? "Trap" : "Assertion"; });

TEST_P(NeverDumps, HasTheErrorLongBeforeTheLimit) {
  start_parking();
  std::vector<std::string> command = checker_command();
  command.insert(command.begin(), {"env", "FIREBREAK_SOFTGPU_DUMPS_AFTER_TRAPS=0"});
  Player& one = start_tenant("one", std::move(command));
  wait("the first kernel", [&] { return one.said("working"); });
  wait_until_adopted("one");
  Player& rogue = start_rogue(GetParam());
  fault(rogue);
  expect_to_have_fallen(one);
  EXPECT_TRUE(agent_->said("has not begun its core dump, and never will"));
  wait_for_end(rogue);
  wait_for_parking("ready");
}

// It stands still, as its neighbour's did before it: nobody tells of it.
// One of them is named. The other one stood still until the domain fell, in 4 of 4 plays (H200).
TEST_F(ParkedDomainWhole, TwoExceptionsAtOnceHarmNobodyElseAndNeitherGetsAResult) {
  start_parking("3");
  Player& one = start_checker("one");
  Player& first = start_rogue("misaligned-load", "first");
  Player& second = start_rogue("trap", "second");
  first.actor->tell("go");
  second.actor->tell("go");
  wait("a name", [&] { return agent_->said("domain a is parked: "); });
  let_them_end();
  expect_right(one);
  for (Player* each : {&first, &second}) {
    wait_for_end(*each);
    EXPECT_FALSE(each->said("CUDA_SUCCESS")) << testing::PrintToString(each->lines);
  }
  wait_for_parking("ready");
}

TEST_F(ParkedDomainWhole, ASecondExceptionWhileItIsHeldHarmsNobodyElse) {
  start_parking();
  Player& one = start_checker("one");
  Player& first = start_rogue("misaligned-load", "first");
  Player& second = start_rogue("trap", "second");
  const pid_t culprit = pid_of("first");
  fault(first, "first");
  second.actor->tell("go");
  let_them_end();
  expect_right(one);
  EXPECT_FALSE(second.said("answered"));
  EXPECT_EQ(parking_state(), "held");
  send(pid_of("second"), SIGKILL);
  wait_for_end(second);
  expect_to_have_got_nothing(first, culprit, false);
  wait_for_parking("ready");
}

// As on an H100: the driver resets the domain of a client that died with its exception.
TEST_F(ParkedDomainWhole, ACulpritThatSomebodyKillsTakesItsDomainAlong) {
  start_parking();
  Player& one = start_checker("one");
  Player& rogue = start_rogue("misaligned-load");
  const pid_t culprit = pid_of("rogue");
  fault(rogue);
  send(culprit, SIGKILL);
  wait_for_end(rogue);
  expect_to_have_fallen(one);
  wait_for_parking("ready");
}

class BadPointers : public ParkedDomainWhole, public testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(OfTheCatalogue, BadPointers, testing::Values("null-load", "bad-program-counter"),
                         [](const auto& kind) {
                           std::string name = kind.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// It comes up again then, as a memory fault: who is left would stand still until the limit. Its process stays
// until that was heard, since the line in the kernel's log has its number.
TEST_P(BadPointers, TheDomainFallsAtOnceWhenTheFirstOfTheOthersGivesItsContextBack) {
  start_parking();
  Player& first = start_large({"--stay"});
  Player& one = start_checker("one");
  Player& rogue = start_rogue(GetParam());
  const pid_t culprit = pid_of("rogue");
  fault(rogue);
  EXPECT_EQ(parking_state(), "held");
  first.actor->tell("go");
  expect_to_have_fallen(one);
  first.actor->tell("end");
  expect_all_its_words(first);
  expect_to_have_got_nothing(rogue, culprit, false);
  wait_for_parking("ready");
}

TEST_F(ParkedDomainWhole, WhoComesMeanwhileIsPutIntoTheOtherDomain) {
  start_parking();
  Player& one = start_checker("one");
  Player& rogue = start_rogue("misaligned-load");
  fault(rogue);
  Player& newcomer = start_checker("newcomer");
  EXPECT_EQ(status_of("newcomer")["active"]["domain"], "b");
  let_them_end();
  expect_right(one);
  expect_right(newcomer);
}

// Its parking client ends with it, and nobody holds the domain any more.
TEST_F(ParkedDomainWhole, WhereTheAgentDiesWhileItIsHeldItFallsAndTheNextAgentParksAgain) {
  start_parking();
  Player& one = start_checker("one");
  Player& rogue = start_rogue("misaligned-load");
  fault(rogue);
  wait("its standstill", [&] { return agent_->said("stands still but for its core dump"); });
  kill_agent();
  wait_for_next_agent();
  expect_to_have_fallen(one);
  wait_for_end(rogue);
  EXPECT_FALSE(rogue.said("answered")) << "it has ended with its agent";
  wait_for_parking("ready");
  Player& newcomer = start_checker("newcomer");
  let_them_end();
  expect_right(newcomer);
}

// Its process did not run meanwhile, and has not seen that nobody read: it goes on in the middle. After a
// trap, since any other culprit ends with the agent.
TEST_F(ParkedDomainWhole, WhereTheNextAgentFindsADumpInItsMiddleItReadsTheRestOfIt) {
  start_parking();
  Player& one = start_checker("one");
  Player& rogue = start_rogue("trap");
  const pid_t culprit = active_of("rogue");
  fault(rogue);
  ASSERT_EQ(::kill(culprit, SIGSTOP), 0);
  kill_agent();
  wait_for_next_agent();
  ask_until("the culprit", [&] { return active_of("rogue") == culprit; });
  ASSERT_EQ(::kill(culprit, SIGCONT), 0);
  wait_for_end(rogue);
  expect_to_have_fallen(one);
  wait_for_parking("ready");
  Player& newcomer = start_checker("newcomer");
  let_them_end();
  expect_right(newcomer);
}

/// Puts itself into the mode by the driver's calls.
class ByCalls : public ParkedDomainWhole {
 protected:
  /// Without what `firebreak run` says of the mode.
  static std::vector<std::string> without_the_mode(std::vector<std::string> command) {
    std::vector<std::string> all = {"env"};
    for (const char* const name :
         {"CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "CUDA_ENABLE_LIGHTWEIGHT_COREDUMP", "CUDA_COREDUMP_FILE",
          "CUDA_COREDUMP_SHOW_PROGRESS", "CUDA_COREDUMP_GENERATION_FLAGS"}) {
      all.insert(all.end(), {"-u", name});
    }
    all.insert(all.end(), command.begin(), command.end());
    return all;
  }
  void wait_until_it_is(const std::string& who) {
    wait(who,
         [&] { return agent_->said(who) && agent_->said("is in the core dump mode by the driver's calls"); });
    EXPECT_THAT(domain()["parking"]["not_in_mode"], IsEmpty());
  }
  /// As in a container: nobody has started it but its environment.
  Player& start_preloaded(std::vector<std::string> command) {
    Player& one = start(std::move(command),
                        {{"FIREBREAK_SOFTGPU_DIR", sandbox_.file("d/softgpu")},
                         {"LD_LIBRARY_PATH", std::string(FIREBREAK_PROGRAMS) + "/../lib/softgpu"},
                         {"LD_PRELOAD", std::string(FIREBREAK_PROGRAMS) + "/../lib/libfirebreak-guard.so"},
                         {"FIREBREAK_SOCKET", socket_},
                         {"CUDA_MPS_PIPE_DIRECTORY", sandbox_.file("d/a/pipe")}});
    wait("its first kernel", [&] { return one.said("working"); });
    return one;
  }
  /// -1: it has none open.
  static int number_of_pipe(pid_t pid) {
    const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
    for (const auto& each : std::filesystem::directory_iterator(folder)) {
      std::error_code gone;
      const std::string target = std::filesystem::read_symlink(each, gone);
      if (target.find("by-calls-") != std::string::npos) return std::stoi(each.path().filename());
    }
    return -1;
  }
  void expect_to_park(Player& one, const std::string& who) {
    Player& rogue = start_rogue("misaligned-load");
    const pid_t culprit = pid_of("rogue");
    fault(rogue);
    EXPECT_EQ(domain()["parking"]["state"], "held");
    EXPECT_TRUE(agent_->said(who + " has begun its core dump")) << "and not into a file somewhere else";
    let_them_end();
    expect_right(one);
    expect_to_have_got_nothing(rogue, culprit, false);
  }
};

TEST_F(ByCalls, AProgramThatHasThePreloadByItsEnvironmentAlone) {
  start_parking();
  Player& one = start_preloaded(checker_command());
  const std::string who = std::to_string(one.actor->record().pid);
  wait_until_it_is(who);
  expect_to_park(one, who);
}

// It has a mount namespace of its own, and finds nothing where the agent's pipes are.
TEST_F(ByCalls, AProgramThatReachesItsPipeByADescriptorAlone) {
  const std::vector<std::string> options =
      ::geteuid() == 0 ? std::vector<std::string>{"-m"} : std::vector<std::string>{"-r", "-m"};
  if (!may_unshare(options)) GTEST_SKIP() << "no mount namespace of its own here";
  start_parking();
  std::vector<std::string> command = {"unshare"};
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(),
                 {"sh", "-c", "mount -t tmpfs none \"$0\" && exec \"$@\"", sandbox_.file("d/core-dumps")});
  const std::vector<std::string> checker = checker_command();
  command.insert(command.end(), checker.begin(), checker.end());
  Player& one = start_preloaded(std::move(command));
  const std::string who = std::to_string(one.actor->record().pid);
  wait_until_it_is(who);
  EXPECT_GE(number_of_pipe(one.actor->record().pid), 512) << "a file that the program opens could have it";
  expect_to_park(one, who);
}

TEST_F(ByCalls, AGuardedTenantWhoseEnvironmentWasCleared) {
  start_parking();
  Player& one = start_tenant("one", without_the_mode(checker_command()), {"--guard"});
  wait("its first kernel", [&] { return one.said("working"); });
  const std::string who = "one-" + std::to_string(pid_of("one"));
  wait_until_it_is(who);
  expect_to_park(one, who);
}

TEST_F(ByCalls, ATenantOfTheLibraryWhoseEnvironmentWasCleared) {
  start_parking();
  Player& active = start_tenant(tenant, without_the_mode(decode_slowly()));
  wait_for_steps(2);
  wait_until_it_is(std::string(tenant) + "-");
  Player& rogue = start_rogue("trap");
  fault(rogue);
  EXPECT_EQ(domain()["parking"]["state"], "held");
  let_them_end();
  wait_for_end(active);
  EXPECT_EQ(active.exit_status(), 0);
  expect_output_as_if_nothing_happened();
}

// The agent's calls find the settings of the program's own, and leave them.
TEST_F(ByCalls, NobodyWhoHasSettingsOfItsOwn) {
  start_parking();
  std::vector<std::string> command = checker_command();
  command.insert(command.begin(), {"env", "CUDA_COREDUMP_FILE=" + sandbox_.file("own")});
  Player& one = start_tenant("one", without_the_mode(std::move(command)), {"--guard"});
  wait("its first kernel", [&] { return one.said("working"); });
  for (nlohmann::json now; now.empty(); now = domain()["parking"]["not_in_mode"]) {
  }
  EXPECT_FALSE(agent_->said("by the driver's calls"));
  Player& rogue = start_rogue("misaligned-load");
  rogue.actor->tell("go");
  expect_to_have_fallen(one);
  wait_for_end(rogue);
}

TEST_F(ParkedDomainWhole, AClientThatIsNotInTheModeIsInNobodysWayAndIsNamed) {
  start_parking();
  Player& one = start_checker("one");
  Player& foreign =
      start(checker_command(), {{"FIREBREAK_SOFTGPU_DIR", sandbox_.file("d/softgpu")},
                                {"LD_LIBRARY_PATH", std::string(FIREBREAK_PROGRAMS) + "/../lib/softgpu"},
                                {"CUDA_MPS_PIPE_DIRECTORY", sandbox_.file("d/a/pipe")}});
  wait("its first kernel", [&] { return foreign.said("working"); });
  const std::string its = std::to_string(foreign.actor->record().pid);
  for (nlohmann::json now; now.empty(); now = domain()["parking"]["not_in_mode"]) {
  }
  EXPECT_THAT(domain()["parking"]["not_in_mode"].dump(), HasSubstr(its));
  EXPECT_THAT(domain()["parking"]["prevented_by"], IsEmpty());
  Player& rogue = start_rogue("misaligned-load");
  const pid_t culprit = pid_of("rogue");
  fault(rogue);
  let_them_end();
  expect_right(one);
  expect_to_have_fallen(foreign);
  expect_to_have_got_nothing(rogue, culprit, false);
}

/// Its own kernel's result reaches nobody, and nobody else is named for it.
TEST_F(ParkedDomainWhole, AnExceptionOfAClientThatIsNotInTheModeIsOutlived) {
  start_parking();
  Player& one = start_checker("one");
  Player& foreign = start({program("firebreak-lab"), "inject", "--wait", "misaligned-load"},
                          {{"FIREBREAK_SOFTGPU_DIR", sandbox_.file("d/softgpu")},
                           {"LD_LIBRARY_PATH", std::string(FIREBREAK_PROGRAMS) + "/../lib/softgpu"},
                           {"CUDA_MPS_PIPE_DIRECTORY", sandbox_.file("d/a/pipe")}});
  wait("the faulter", [&] { return foreign.said("prepared"); });
  for (nlohmann::json now; now.empty(); now = domain()["parking"]["not_in_mode"]) {
  }
  foreign.actor->tell("go");
  wait_for_parking("held");
  EXPECT_THAT(domain()["parking"]["culprits"], IsEmpty());
  let_them_end();
  expect_right(one);
  wait_for_end(foreign);
  EXPECT_FALSE(foreign.said("CUDA_SUCCESS")) << testing::PrintToString(foreign.lines);
}

}  // namespace
}  // namespace firebreak::tests
