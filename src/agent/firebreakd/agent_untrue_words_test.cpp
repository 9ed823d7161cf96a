// SPDX-License-Identifier: Apache-2.0
/// A process that says of itself that it is in a domain where it is not: nothing follows for those who are.
/// It is there once MPS names it as a client, or once the agent has placed it there.
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <vector>

#include "tests/doubles/agent/parked_domain_test_support.h"
#include "tests/doubles/agent/spare_page_test_support.h"

namespace firebreak::agent {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

class UntrueWords : public ParkedDomain {
 protected:
  /// A process that joins by itself, and names domain a.
  Peer liar(const Environment& environment = {}) {
    Peer made = peer("", environment);
    claim(made);
    return made;
  }
  void claim(Peer& process) {
    process.send(abi::Join{"liar", abi::Role::Active, "", "", "/mps/a"});
    settle();
    EXPECT_TRUE(process.receive());
    detectors.callbacks.on_gpu_opened(process.pid());
    settle();
  }
  void mps_names(const std::string& domain, pid_t pid) {
    domains.callbacks.on_clients(domain, {clock.now(), {pid}});
    settle();
  }
  nlohmann::json tenant(const std::string& name) {
    const auto status = nlohmann::json::parse(agent->status_json());
    for (const auto& each : status["tenants"]) {
      if (each["name"] == name) return each;
    }
    return nullptr;
  }
  std::string phase_of(const std::string& name) { return tenant(name)["phase"]; }
  nlohmann::json not_in_mode() { return parking("a")["not_in_mode"]; }
  /// As the driver's memory manager tells it, of a process alone.
  void fatal_event(pid_t pid) {
    fault::Fault fault;
    fault.source = fault::FaultSource::UvmEvent;
    fault.fault_class = fault::FaultClass::MmuReplayable;
    fault.pid = pid;
    fault.conclusive = true;
    fault.when = clock.now();
    hear(fault);
    settle();
  }
};

TEST_F(UntrueWords, ParkingIsNotPreventedByWhoSaysThatItIsThere) {
  Peer process = liar();
  EXPECT_THAT(not_in_mode(), IsEmpty());
  mps_names("a", process.pid());
  EXPECT_THAT(not_in_mode(), ElementsAre("liar-" + std::to_string(process.pid()))) << "now it is there";
}

TEST_F(UntrueWords, ADumpOfWhoIsNotThereParksNobody) {
  const std::string pipe = directory.path() + "/dumps/pipes/own.pipe";
  ASSERT_TRUE(os::make_fifo(pipe));
  Peer command = peer();
  const Process llm = start(command, "llm");
  Peer process = liar(park::mode_environment(pipe));
  os::RealKernel real;
  const auto end = real.open(pipe, O_WRONLY | O_NONBLOCK);  // where nobody reads there is none
  if (end) (void)!::write(end->get(), culprits_dump.data(), culprits_dump.size());
  settle();
  EXPECT_EQ(parking("a")["state"], "ready");
  EXPECT_THAT(detectors.exceptions, IsEmpty());
  EXPECT_FALSE(end.has_value()) << "nobody reads it";
  EXPECT_TRUE(lives(llm));
}

TEST_F(UntrueWords, TheDumpOfWhomMpsNamesIsRead) {
  const std::string pipe = directory.path() + "/dumps/pipes/own.pipe";
  ASSERT_TRUE(os::make_fifo(pipe));
  Peer process = liar(park::mode_environment(pipe));
  mps_names("a", process.pid());
  name_culprit({process.pid(), pipe, {}});
}

TEST_F(UntrueWords, AFaultOfWhoIsNotThereIsNoFaultOfTheDomain) {
  auto llm = pair("llm");
  ASSERT_EQ(tenant("llm")["active"]["domain"], "a");
  Peer process = liar();
  fatal_event(process.pid());
  EXPECT_EQ(phase_of("llm"), "serving");
  EXPECT_EQ(word(llm.page).epoch, 0u);
  EXPECT_EQ(domains.states.count("a"), 0u) << "the domain takes clients";
  mps_names("a", process.pid());
  fatal_event(process.pid());
  EXPECT_NE(phase_of("llm"), "serving");
}

TEST_F(UntrueWords, TheEndOfWhoIsNotThereIsNoDangerToAnybody) {
  auto llm = pair("llm");
  Peer process = liar();
  process.end(kernel);
  detectors.callbacks.on_exit(process.pid());
  settle();
  EXPECT_EQ(phase_of("llm"), "serving");
}

TEST_F(UntrueWords, WhoNamesNoDomainIsInNoneEither) {
  auto llm = pair("llm");
  Peer process = peer();
  process.send(abi::Join{"liar", abi::Role::Active});
  settle();
  process.end(kernel);
  detectors.callbacks.on_exit(process.pid());
  settle();
  EXPECT_EQ(phase_of("llm"), "serving");
  EXPECT_THAT(not_in_mode(), IsEmpty());
}

TEST_F(UntrueWords, WhereMpsNamesItItIsWhateverItSays) {
  Peer process = liar();
  mps_names("b", process.pid());
  EXPECT_EQ(tenant("liar")["active"]["domain"], "b");
  EXPECT_THAT(not_in_mode(), IsEmpty());
  EXPECT_THAT(parking("b")["not_in_mode"], ElementsAre("liar-" + std::to_string(process.pid())));
}

TEST_F(UntrueWords, MpsIsAskedWhoseClientANewcomerIs) {
  domains.asked_for_clients.clear();
  Peer process = liar();
  EXPECT_THAT(domains.asked_for_clients, Contains("a"));
}

TEST_F(UntrueWords, TheNextAgentBelievesNoMore) {
  auto llm = pair("llm");
  Peer command = peer(), process = liar();
  const Process placed = start(command, "placed", false);
  begin(Milliseconds(600'000));
  for (const pid_t pid : {process.pid(), placed.pid}) detectors.callbacks.on_gpu_opened(pid);
  EXPECT_THAT(not_in_mode(), Not(Contains("liar-" + std::to_string(process.pid()))));
  EXPECT_THAT(not_in_mode(), Contains("placed-" + std::to_string(placed.pid)));
  fatal_event(process.pid());
  EXPECT_EQ(word(llm.page).epoch, 0u);
  EXPECT_EQ(phase_of("llm"), "serving");
}

TEST_F(UntrueWords, TheDetectorsHearOfNoDomainThatIsAProcesssOwnWord) {
  Peer process = liar();
  const watch::Target& target = detectors.targets.at(process.pid());
  EXPECT_EQ(target.domain, "");
  EXPECT_EQ(target.domain_by(fault::FaultSource::UvmEvent), "");
  mps_names("b", process.pid());
  EXPECT_EQ(target.domain, "b");
}

TEST_F(UntrueWords, WhatIsMissedOfWhoIsNotThereIsNoDangerToAnybody) {
  auto llm = pair("llm");
  Peer process = liar();
  const watch::Gap gap{.source = fault::FaultSource::UvmEvent, .pid = process.pid(), .text = "dropped"};
  detectors.callbacks.on_gap(gap);
  EXPECT_EQ(phase_of("llm"), "serving");
  mps_names("a", process.pid());
  detectors.callbacks.on_gap(gap);
  EXPECT_EQ(phase_of("llm"), "suspecting");
}

/// The page of a spare says where its process works, and its environment in which domains it may.
TEST_F(UntrueWords, AProcessWorksInNoDomainOnlyBecauseItsPageSaysSo) {
  PageOfSpare page;
  Peer command = peer();
  const auto placed = std::get<abi::Placed>(ask(command, abi::Place{"llm", abi::Role::Active}));
  os::SpawnRequest request;  // in a, and without a spare
  request.command = {"sleep", "300"};
  request.standard_input = page.descriptor();
  request.environment = placed.environment;
  request.environment.emplace_back(abi::spare_variable, "/mps/a:/mps/b");
  const pid_t pid = kernel.spawn(request).value();
  ask(command, abi::Adopt{"llm", abi::Role::Active, pid});
  detectors.callbacks.on_gpu_opened(pid);
  until([&] { return tenant("llm")["spare"].is_object(); });
  page.works_in("b", "b");
  page->flips.fetch_add(1);
  until([&] { return tenant("llm")["spare"]["moves"] == 1; });
  EXPECT_EQ(tenant("llm")["active"]["domain"], "a") << "its word alone";
  mps_names("b", pid);
  until([&] { return tenant("llm")["active"]["domain"] == "b"; });
}

// --- who was told to run in a domain, and is no client there

class PlacedOnly : public UntrueWords {
 protected:
  Process placed(Peer& command, bool in_mode = true) {
    is_client = false;
    const Process made = start(command, "rogue", in_mode);
    is_client = true;
    return made;
  }
  /// Who raised the exception, and whom MPS has not named yet.
  std::pair<Process, Process> park_beside_one_that_came_late(Peer& first, Peer& second) {
    const Process culprit = start(first, "culprit"), late = placed(second);
    of_culprit.emplace(culprit.pipe, culprits_dump);
    Writer of_client(client_pipe(), idle_dump);
    until([&] {
      (void)of_culprit->write();
      (void)of_client.write();
      return parking("a")["state"] == "held";
    });
    return {culprit, late};
  }
  /// With all that comes meanwhile.
  void pass(Milliseconds time) {
    constexpr Milliseconds step{5};
    for (Milliseconds passed{0}; passed < time; passed += step) {
      clock.advance(step);
      loop->run_once(step);
    }
    settle();
  }
};

TEST_F(PlacedOnly, ItsDumpParksNobodyUntilMpsNamesIt) {
  Peer first = peer(), second = peer();
  start(first, "llm");
  const Process rogue = placed(second);
  domains.asked_for_clients.clear();
  of_culprit.emplace(rogue.pipe, culprits_dump);
  settle();
  EXPECT_THAT(domains.asked_for_clients, Contains("a"));
  EXPECT_EQ(parking("a")["state"], "ready");
  EXPECT_EQ(domains.states.count("a"), 0u) << "the domain takes clients";
  mps_names("a", rogue.pid);
  EXPECT_EQ(parking("a")["state"], "halted");
  until([&] {
    (void)of_culprit->write();
    return parking("a")["state"] == "held";
  });
}

/// Its first kernel may run by then.
TEST_F(PlacedOnly, WhoCameAMomentBeforeTheFaultIsWaitedForUntilMpsHasAnswered) {
  Peer first = peer(), second = peer();
  const auto [culprit, late] = park_beside_one_that_came_late(first, second);
  pass(Milliseconds(900));
  EXPECT_EQ(parking("a")["state"], "held");
  mps_names("a", late.pid);
  pass(Milliseconds(2'000));
  EXPECT_EQ(parking("a")["state"], "held");
}

TEST_F(PlacedOnly, WhoIsNeverNamedIsWaitedForNoLonger) {
  Peer first = peer(), second = peer();
  (void)park_beside_one_that_came_late(first, second);
  pass(Milliseconds(1'100));
  until([&] { return parking("a")["state"] != "held"; });
}

TEST_F(PlacedOnly, ItsDumpIsReadAndDroppedWhereMpsNeverNamesIt) {
  Peer first = peer(), second = peer();
  start(first, "llm");
  const Process rogue = placed(second);
  Writer of_rogue(rogue.pipe, idle_dump);
  settle();
  clock.advance(std::chrono::seconds(7));
  until([&] { return of_rogue.write(); });
  EXPECT_EQ(parking("a")["state"], "ready");
  EXPECT_THAT(detectors.exceptions, IsEmpty());
}

TEST_F(PlacedOnly, WhatIsNoDumpParksNobodyAlsoWhereItIsAClients) {
  Peer first = peer(), second = peer();
  start(first, "llm");
  const Process rogue = start(second, "rogue");
  Writer of_rogue(rogue.pipe, std::string(300'000, 'x'));
  until([&] { return of_rogue.write(); });
  EXPECT_EQ(parking("a")["state"], "ready");
  EXPECT_EQ(domains.states.count("a"), 0u);
  settle();             // its end is seen
  name_culprit(rogue);  // what it writes next is heard
}

TEST_F(PlacedOnly, WhoWritesWhatIsNoDumpHasMpsAskedNothing) {
  opens_gpu = false;
  Peer command = peer();
  const Process rogue = placed(command);
  domains.asked_for_clients.clear();
  for (int i = 0; i < 3; ++i) {
    Writer of_rogue(rogue.pipe, std::string(10'000, 'x'));
    until([&] { return of_rogue.write(); });
    settle();
  }
  EXPECT_THAT(domains.asked_for_clients, IsEmpty());
}

/// How many lines of that form the log gets while `act` runs.
template <class Act>
std::ptrdiff_t lines_written(const std::string& form, const Act& act) {
  const auto logger = spdlog::default_logger();
  std::ostringstream text;
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::ostream_sink_st>(text)));
  act();
  spdlog::set_default_logger(logger);
  const std::string all = text.str();
  const std::regex line(form);
  return std::distance(std::sregex_iterator(all.begin(), all.end(), line), std::sregex_iterator());
}

TEST_F(PlacedOnly, OfWhatIsNoDumpTheLogHasALineOfEachProcess) {
  Peer first = peer(), second = peer();
  const std::vector<std::string> pipes = {placed(first).pipe, start(second, "other").pipe};
  const auto write_again_and_again = [&] {
    for (const std::string& pipe : pipes) {
      for (int i = 0; i < 5; ++i) {
        Writer of_it(pipe, std::string(10'000, 'x'));
        until([&] { return of_it.write(); });
        settle();
      }
    }
  };
  EXPECT_EQ(lines_written("what [a-z]+-[0-9]+ writes into its pipe is dropped", write_again_and_again), 2);
}

TEST_F(PlacedOnly, OfWhatIsNobodysTheLogHasALineOfEachPipe) {
  Peer command = peer();
  const auto told = std::get<abi::Placed>(ask(command, abi::Place{"nobody", abi::Role::Active})).environment;
  const auto pipe =
      std::ranges::find(told, "CUDA_COREDUMP_FILE", [](const auto& each) { return each.first; });
  ASSERT_NE(pipe, told.end());
  const auto write_again_and_again = [&] {
    for (int i = 0; i < 5; ++i) {
      Writer of_it(pipe->second, std::string(10'000, 'x'));
      settle();
      clock.advance(std::chrono::seconds(7));
      until([&] { return of_it.write(); });
      settle();
    }
  };
  EXPECT_EQ(lines_written("is nobody's that is known", write_again_and_again), 1);
}

TEST_F(PlacedOnly, WhoWritesWhatIsNoDumpIsNotWaitedForByOthers) {
  Peer first = peer(), second = peer();
  const Process llm = start(first, "llm"), rogue = start(second, "rogue");
  const os::Fd end = os::RealKernel().open(rogue.pipe, O_WRONLY | O_NONBLOCK).value();
  const std::string other(4'000, 'x');
  ASSERT_EQ(::write(end.get(), other.data(), other.size()), static_cast<ssize_t>(other.size()));
  settle();
  Writer of_llm(llm.pipe, idle_dump), of_client(client_pipe(), idle_dump);
  until([&] {
    (void)of_llm.write();
    return parking("a")["state"] == "held";
  });
}

/// MPS names a client that has ended for a while, and numbers come again.
TEST_F(PlacedOnly, TheListOfWhoHasEndedSaysNothingOfWhoHasItsNumberNow) {
  Peer command = peer();
  const Process llm = start(command, "llm");
  detectors.callbacks.on_exit(llm.pid);
  settle();
  ask(command, abi::Place{"rogue", abi::Role::Active});
  command.send(abi::Adopt{"rogue", abi::Role::Active, llm.pid});
  settle();
  detectors.callbacks.on_gpu_opened(llm.pid);
  mps_names("a", llm.pid);
  EXPECT_THAT(not_in_mode(), IsEmpty());
  domains.callbacks.on_clients("a", {clock.now(), {}});
  mps_names("a", llm.pid);
  EXPECT_THAT(not_in_mode(), ElementsAre("rogue-" + std::to_string(llm.pid)));
}

TEST_F(PlacedOnly, NobodyIsAskedForWhoIsNamedAlreadyWhenItDumps) {
  Peer command = peer();
  const Process rogue = start(command, "rogue");
  domains.asked_for_clients.clear();
  Writer of_rogue(rogue.pipe, idle_dump);
  settle();
  EXPECT_EQ(parking("a")["state"], "halted");
  EXPECT_THAT(domains.asked_for_clients, IsEmpty());
}

TEST_F(PlacedOnly, MpsIsAskedAgainUntilItNamesWhoHasComeToTheGpu) {
  Peer command = peer();
  const Process rogue = placed(command);
  domains.asked_for_clients.clear();
  until([&] { return std::ranges::count(domains.asked_for_clients, "a") > 1; });
}

TEST_F(PlacedOnly, ADumpThatSaysNothingLetsNobodyLeave) {
  auto neighbour = pair("neighbour");
  Peer command = peer();
  const Process rogue = start(command, "rogue");
  std::string header_alone = culprits_dump;
  std::fill(header_alone.begin() + 64, header_alone.end(), '\0');
  Writer of_rogue(rogue.pipe, header_alone);
  until([&] {
    (void)of_rogue.write();
    return parking("a")["state"] == "halted";
  });
  neighbour.active.end(kernel);  // nobody else is waited for
  detectors.callbacks.on_exit(neighbour.active.pid());
  until([&] { return of_rogue.write(); });
  settle();
  EXPECT_EQ(parking("a")["state"], "halted");
}

TEST_F(PlacedOnly, ItPreventsNothingWithAnothersPipe) {
  Peer first = peer(), second = peer("", {});
  const Process llm = start(first, "llm");
  const Peer rogue = peer("", park::mode_environment(llm.pipe));
  ask(second, abi::Place{"rogue", abi::Role::Active});
  second.send(abi::Adopt{"rogue", abi::Role::Active, rogue.pid()});
  settle();
  detectors.callbacks.on_gpu_opened(rogue.pid());
  settle();
  EXPECT_THAT(parking("a")["prevented_by"], IsEmpty());
  EXPECT_THAT(not_in_mode(), IsEmpty());
  mps_names("a", rogue.pid());
  EXPECT_THAT(parking("a")["prevented_by"], ElementsAre("rogue-" + std::to_string(rogue.pid())));
}

// Who is named for a fault by the driver is on the GPU, whether or not MPS was asked already.
TEST_F(PlacedOnly, AFaultThatTheDriverTellsOfItCounts) {
  auto llm = pair("llm");
  Peer command = peer();
  const Process rogue = placed(command, false);
  fatal_event(rogue.pid);
  EXPECT_NE(phase_of("llm"), "serving");
}

TEST_F(PlacedOnly, ItsEndIsNoDangerToAnybody) {
  auto llm = pair("llm");
  Peer command = peer();
  const Process rogue = placed(command, false);
  ASSERT_TRUE(kernel.send_signal(kernel.pidfd_open(rogue.pid).value(), SIGKILL));
  while (!kernel.try_wait(rogue.pid).value()) {
  }
  detectors.callbacks.on_exit(rogue.pid);
  settle();
  EXPECT_EQ(phase_of("llm"), "serving");
}

// --- pipes of core dumps: whose they are is no name's to say, and each goes with who it is for

class Pipes : public UntrueWords {
 protected:
  std::set<std::string> pipes() {
    std::set<std::string> all;
    for (const auto& each : std::filesystem::directory_iterator(directory.path() + "/dumps/pipes"))
      all.insert(each.path());
    return all;
  }
  std::string start_time_of(pid_t pid) {
    return std::string(os::start_time(kernel.read_file(os::proc_folder(pid) + "/stat").value()));
  }
  /// Joined, and named by MPS in domain a.
  Peer client(const std::string& name, const Environment& environment = {}) {
    Peer made = peer("", environment);
    join(made, name, abi::Role::Active);
    detectors.callbacks.on_gpu_opened(made.pid());
    settle();
    return made;
  }
};

TEST_F(Pipes, NoneIsMadeBecauseAnEnvironmentNamesIt) {
  Peer llm = client("llm");
  const std::string forged = directory.path() + "/dumps/pipes/by-calls-" + std::to_string(llm.pid()) + "-" +
                             start_time_of(llm.pid()) + "-0000000000000000.pipe";
  Peer rogue = client("rogue", park::mode_environment(forged));
  EXPECT_FALSE(os::is_there(forged));
  EXPECT_THAT(not_in_mode(), Contains("rogue-" + std::to_string(rogue.pid())));
}

TEST_F(Pipes, WhoIsPlacedAgainAndAgainHasNoMoreThanOne) {
  const auto before = pipes();
  Peer command = peer();
  for (int i = 0; i < 50; ++i) {
    abi::Place place{"llm", abi::Role::Active};
    place.spare = true;
    ask(command, place);
  }
  EXPECT_EQ(pipes().size(), before.size() + 2) << "of its two domains";
  command.hang_up();
  settle();
  EXPECT_EQ(pipes(), before) << "nobody comes";
}

TEST_F(Pipes, ThatOfWhoNeverEnteredTheModeGoesWithItsProcess) {
  const auto before = pipes();
  Peer command = peer();
  const Process llm = start(command, "llm", false);
  EXPECT_EQ(pipes().size(), before.size() + 1);
  ASSERT_TRUE(kernel.send_signal(kernel.pidfd_open(llm.pid).value(), SIGKILL));
  while (!kernel.try_wait(llm.pid).value()) {
  }
  detectors.callbacks.on_exit(llm.pid);
  settle();
  EXPECT_EQ(pipes(), before);
}

TEST_F(Pipes, TheNextAgentRemovesThoseThatAreNobodys) {
  Peer command = peer(), another = peer();
  const Process llm = start(command, "llm");
  ask(another, abi::Place{"never-comes", abi::Role::Active});
  EXPECT_EQ(pipes().size(), 4u) << "two parking clients, a process, and who never comes";
  returns_within = Milliseconds(0);  // nobody is waited for
  begin(Milliseconds(600'000));
  until([&] { return pipes().size() == 3; });
  EXPECT_TRUE(os::is_there(llm.pipe));
}

// --- what a core dump may take of the agent's memory

TEST_F(UntrueWords, OneUsersDumpsLeaveRoomForAnothers) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  dumps_bytes_max = 9 * idle_dump.size();  // of which somebody wants more than all
  begin(Milliseconds(600'000));
  constexpr uid_t mallory = 65534;
  const std::string endless = directory.path() + "/dumps/pipes/own.pipe";
  ASSERT_TRUE(os::make_fifo(endless));
  ASSERT_EQ(::chown(endless.c_str(), mallory, mallory), 0);
  Peer command = peer(), rogue = peer("", park::mode_environment(endless));
  const std::string status = os::proc_folder(rogue.pid()) + "/status";
  kernel.files[status] = std::regex_replace(kernel.read_file(status).value(), std::regex("Uid:[^\n]*"),
                                            "Uid:\t65534\t65534\t65534\t65534");
  const Process llm = start(command, "llm");
  join(rogue, "rogue", abi::Role::Active);
  detectors.callbacks.on_gpu_opened(rogue.pid());
  settle();
  Writer of_client(client_pipe(), idle_dump);
  Writer of_rogue(endless, park::test::dump_of(
                               {park::test::sms(6),
                                {".cudbg.relfimg.dev0", 7, 0, std::string(16 * idle_dump.size(), '\0')}}));
  Writer of_llm(llm.pipe, idle_dump);
  until([&] {
    (void)of_client.write();
    (void)of_rogue.write();
    return of_llm.write();
  });
  settle();
  EXPECT_TRUE(lives(llm)) << "its dump was whole, and so it was not taken for the culprit";
}

}  // namespace
}  // namespace firebreak::agent
