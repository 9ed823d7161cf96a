// SPDX-License-Identifier: Apache-2.0
/// Parked domains.
#include "agent/parking/park/evidence_folder.h"
#include "tests/doubles/agent/parked_domain_test_support.h"

namespace firebreak::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

TEST_F(ParkedDomain, WhoIsPlacedThereIsInTheMode) {
  Peer command = peer();
  const Process llm = start(command, "llm");
  EXPECT_THAT(llm.pipe, HasSubstr(directory.path() + "/dumps/pipes/"));
  EXPECT_THAT(llm.pipe, testing::MatchesRegex(".*/[0-9]+-[0-9]+-[0-9a-f]{16}\\.pipe")) << "nobody guesses it";
  const auto rights = std::filesystem::status(directory.path() + "/dumps/pipes").permissions();
  EXPECT_EQ(rights, std::filesystem::perms(0711)) << "nobody else reads its name, and claims it first";
  EXPECT_NE(llm.pipe.substr(llm.pipe.size() - 21), client_pipe().substr(client_pipe().size() - 21));
  EXPECT_THAT(parking("a")["not_in_mode"], IsEmpty());
}

std::string pipe_in(const Environment& environment) {
  for (const auto& [name, value] : environment) {
    if (name == "CUDA_COREDUMP_FILE") return value;
  }
  return {};
}

// Whoever opens it would stand still there until somebody does.
TEST_F(ParkedDomain, APipeIsReadFromTheMomentOnWhenItIsGivenOut) {
  Peer command = peer();
  const auto placed = std::get<abi::Placed>(ask(command, abi::Place{"llm", abi::Role::Active}));
  const std::string pipe = pipe_in(placed.environment);
  Writer of_nobody(pipe, idle_dump);  // which finds a reader
  settle();
  EXPECT_FALSE(of_nobody.write()) << "somebody may come whose it is";
  clock.advance(std::chrono::seconds(7));
  until([&] { return of_nobody.write(); });
  Writer again(pipe, idle_dump);
  until([&] { return again.write(); });
}

/// Whoever was given many pipes may write into each.
TEST_F(ParkedDomain, WhoseManyDumpsAreIsLookedForOnce) {
  constexpr int many = 5;
  Peer command = peer();
  for (int i = 0; i < many; ++i) start(command, "llm-" + std::to_string(i), false);
  std::vector<Writer> of_nobody;
  kernel.environment_looks = 0;
  for (int i = 0; i < many; ++i) {
    const auto placed = std::get<abi::Placed>(ask(command, abi::Place{"llm", abi::Role::Active}));
    of_nobody.emplace_back(pipe_in(placed.environment), idle_dump);
  }
  settle();
  EXPECT_GT(kernel.environment_looks, 0);
  EXPECT_LE(kernel.environment_looks, many);
}

TEST_F(ParkedDomain, APipeForWhichNobodyComesIsRemoved) {
  std::optional<Peer> command = peer();
  const auto placed = std::get<abi::Placed>(ask(*command, abi::Place{"llm", abi::Role::Active}));
  const std::string pipe = pipe_in(placed.environment);
  EXPECT_TRUE(os::is_there(pipe));
  command.reset();
  until([&] { return !os::is_there(pipe); });
}

// On a busy machine what `firebreak run` has started may begin its program after many seconds.
TEST_F(ParkedDomain, WhoHasNotBegunItsProgramIsNotInTheWayHoweverLongThatTakes) {
  Peer command = peer();
  opens_gpu = false;
  const Process llm = start(command, "llm", false);
  clock.advance(std::chrono::seconds(60));
  const auto until_looked = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (std::chrono::steady_clock::now() < until_looked) loop->run_once(Milliseconds(50));
  EXPECT_THAT(parking("a")["not_in_mode"], IsEmpty());
  detectors.callbacks.on_gpu_opened(llm.pid);
  EXPECT_THAT(parking("a")["not_in_mode"], ElementsAre("llm-" + std::to_string(llm.pid)));
}

/// The path stands in the process's own environment: it leads to no file of others, and removes none.
TEST_F(ParkedDomain, APathThatIsNotItsPipeIsLeftAlone) {
  const std::string file = directory.path() + "/precious", pipe = directory.path() + "/dumps/pipes/9-9.pipe";
  std::ofstream(file) << "precious";
  ASSERT_TRUE(os::make_fifo(pipe));
  ASSERT_TRUE(::geteuid() != 0 || os::give_to_user(pipe, 65534));
  for (const std::string& path :
       {directory.path() + "/dumps/pipes/../../precious", directory.path() + "/dumps/pipes/x/9.pipe", pipe}) {
    Peer command = peer("", park::mode_environment(path));
    ask(command, abi::Adopt{"evil", abi::Role::Active, command.pid()});
    detectors.callbacks.on_gpu_opened(command.pid());
    if (path != pipe || ::geteuid() == 0) {
      EXPECT_THAT(parking("a")["not_in_mode"].dump(), HasSubstr(std::to_string(command.pid()))) << path;
    }
    command.end(kernel);
    detectors.callbacks.on_exit(command.pid());
    settle();
  }
  EXPECT_TRUE(os::is_there(file));
  EXPECT_TRUE(os::is_there(pipe));
}

TEST_F(ParkedDomain, NobodysDumpIsReadBeforeAllHaveBegun) {
  Peer first = peer(), second = peer();
  const Process llm = start(first, "llm"), rogue = start(second, "rogue");
  Writer of_llm(llm.pipe, idle_dump);
  settle();
  EXPECT_FALSE(of_llm.write()) << "it would go on, and keep the others from dumping";
  Writer of_client(client_pipe(), idle_dump);
  settle();
  EXPECT_FALSE(of_llm.write());
  Writer of_rogue(rogue.pipe, culprits_dump);
  until([&] { return of_llm.write(); });
  settle();
  EXPECT_FALSE(of_client.write()) << "that is what holds the domain";
}

TEST_F(ParkedDomain, WhoDoesNotDumpIsNotWaitedForForEver) {
  Peer first = peer(), second = peer();
  const Process llm = start(first, "llm");
  start(second, "rogue");
  Writer of_llm(llm.pipe, idle_dump);
  until([&] { return of_llm.write(); });
}

// A program with much code begins its dump late: it was read too early, and everybody stood still for 4 s
// (H100).
TEST_F(ParkedDomain, WhoHasTheGpuIsWaitedForLongerThanWhoBegins) {
  Peer first = peer(), second = peer(), third = peer();
  const Process llm = start(first, "llm"), large = start(second, "large");
  opens_gpu = false;
  start(third, "beginner");
  bool is_late = false;
  const auto waiting = loop->after(Milliseconds(700), [&] { is_late = true; });
  Writer of_client(client_pipe(), idle_dump), of_llm(llm.pipe, idle_dump);
  const std::size_t left_bytes = of_llm.left_bytes();
  until([&] { return is_late; });
  EXPECT_FALSE(of_llm.write());
  EXPECT_EQ(of_llm.left_bytes(), left_bytes) << "it is read before a client with much code has begun";
  Writer of_large(large.pipe, idle_dump);
  bool is_much_later = false;
  const auto waiting_more = loop->after(Milliseconds(1200), [&] { is_much_later = true; });
  until([&] { return of_llm.write() || is_much_later; });
  EXPECT_FALSE(is_much_later) << "the beginner has nothing to dump";
}

// The follower may come after the word that it has opened the GPU, as after an agent's restart.
TEST_F(ParkedDomain, WhoHadTheGpuBeforeItWasFollowedIsWaitedForAsWell) {
  Peer first = peer(), large = peer("", mode_of("large"));
  const Process llm = start(first, "llm");
  detectors.callbacks.on_gpu_opened(large.pid());
  ask(large, abi::Adopt{"large", abi::Role::Active, large.pid()});
  settle();
  bool is_late = false;
  const auto waiting = loop->after(Milliseconds(700), [&] { is_late = true; });
  Writer of_client(client_pipe(), idle_dump), of_llm(llm.pipe, idle_dump);
  const std::size_t left_bytes = of_llm.left_bytes();
  until([&] { return is_late; });
  EXPECT_FALSE(of_llm.write());
  EXPECT_EQ(of_llm.left_bytes(), left_bytes);
}

// MPS's keeper takes a domain for well whose clients run on.
TEST_F(ParkedDomain, WhileItIsHeldItTakesNobodyWhateverMpsSays) {
  Peer first = peer(), second = peer();
  start(first, "llm");
  const Process rogue = start(second, "rogue");
  name_culprit(rogue);
  domains.states.erase("a");
  until([&] { return domains.states["a"] == mps::DomainState::Draining; });
  EXPECT_EQ(parking("a")["state"], "held");
}

// Processes that waited for a domain came into this one, and stood still until it fell.
TEST_F(ParkedDomain, WhileItIsHeldNobodyIsPlacedThereWhateverMpsSays) {
  Peer first = peer(), second = peer(), next = peer();
  start(first, "llm");
  name_culprit(start(second, "rogue"));
  domains.states = {{"b", mps::DomainState::Draining}};
  EXPECT_THAT(refusal(next, abi::Place{"next", abi::Role::Active}), HasSubstr("a is parked, b is draining"));
}

/// The file that says to who comes whether a domain is parked.
class Marked : public ParkedDomain {
 protected:
  void SetUp() override {
    domains.pipe_directories = directory.path() + "/";
    for (const std::string& domain : domains.names())
      std::filesystem::create_directory(directory.path() + "/" + domain);
  }
  std::string mark_of(const std::string& domain) const {
    return directory.path() + "/" + domain + "/" + abi::parked_file;
  }
  bool is_marked(const std::string& domain) const { return os::is_plain_file(mark_of(domain)); }
};

TEST_F(Marked, IsADomainForAsLongAsItIsParked) {
  begin(Milliseconds(600'000));
  Peer first = peer(), second = peer();
  start(first, "llm");
  EXPECT_FALSE(is_marked("a"));
  name_culprit(start(second, "rogue"));
  EXPECT_TRUE(is_marked("a"));
  EXPECT_FALSE(is_marked("b"));
  domains.callbacks.on_clients_lost("a");
  until([&] { return !is_marked("a"); });
}

// The agent was killed while the domain was parked.
TEST_F(Marked, IsNoneAfterTheAgentThatParkedIt) {
  for (const int park_ms : {600'000, 0}) {
    agent.reset();
    ASSERT_TRUE(os::make_file(mark_of("a")));
    AgentOptions options{path, {}};
    options.park = Milliseconds(park_ms);
    options.dump_directory = directory.path() + "/dumps";
    agent = start_agent(options);
    EXPECT_FALSE(is_marked("a")) << park_ms;
  }
}

// Root in a container that was given the pipe directory may write there.
TEST_F(Marked, ByNobodyElseForLong) {
  begin(Milliseconds(600'000));
  ASSERT_TRUE(os::make_file(mark_of("a")));
  until([&] { return !is_marked("a"); });
  Peer first = peer(), second = peer();
  start(first, "llm");
  name_culprit(start(second, "rogue"));
  ASSERT_TRUE(os::remove_file(mark_of("a")));
  until([&] { return is_marked("a"); });
}

TEST_F(Marked, IsADomainAlsoWhereAnotherFileHasThatName) {
  std::filesystem::create_symlink(directory.path(), mark_of("a"));
  ASSERT_TRUE(os::make_fifo(mark_of("b")));
  begin(Milliseconds(600'000));
  EXPECT_FALSE(os::is_there(mark_of("a")));
  EXPECT_FALSE(os::is_there(mark_of("b")));
  Peer first = peer(), second = peer();
  start(first, "llm");
  std::filesystem::create_symlink(directory.path(), mark_of("a"));
  name_culprit(start(second, "rogue"));
  EXPECT_TRUE(is_marked("a"));
  EXPECT_TRUE(std::filesystem::is_directory(directory.path())) << "what the link led to stays";
}

// Blocks that share the halted multiprocessor stand still until the GPU takes turns (H100).
TEST_F(ParkedDomain, WhileItIsHaltedOtherDomainsTakeTurns) {
  Peer first = peer(), second = peer();
  start(first, "llm");
  const Process rogue = start(second, "rogue");
  settle();
  EXPECT_EQ(turns_of("a") + turns_of("b"), 0u);
  of_culprit.emplace(rogue.pipe, culprits_dump);
  until([&] { return turns_of("b") >= 3; });
  until([&] {
    (void)of_culprit->write();
    return parking("a")["state"] == "held";
  });
  const auto before = turns_of("b");
  until([&] { return turns_of("b") > before; });
  EXPECT_EQ(turns_of("a"), 0u) << "its own would wait";
  EXPECT_THAT(domains.fallen, IsEmpty());
  domains.callbacks.on_clients_lost("a");
  settle();
  EXPECT_THAT(domains.fallen, ElementsAre("a")) << "whether it has drained is looked at soon";
  const auto at_its_fall = turns_of("b");
  bool is_later = false;
  const auto waiting = loop->after(Milliseconds(200), [&] { is_later = true; });
  until([&] { return is_later; });
  EXPECT_EQ(turns_of("b"), at_its_fall);
}

TEST_F(ParkedDomain, ItsCulpritIsNamedByItsDump) {
  Peer first = peer(), second = peer();
  const Process llm = start(first, "llm"), rogue = start(second, "rogue");
  Writer of_client(client_pipe(), idle_dump);
  name_by_its_dump(llm, rogue);
  EXPECT_THAT(detectors.exceptions, ElementsAre(Pair(rogue.pid, HasSubstr("MISALIGNED"))));
}

// Its next call would say CUDA_SUCCESS (H100).
TEST_F(ParkedDomain, ItsCulpritStandsStillInItsDumpUntilAllOthersAreComplete) {
  Peer first = peer(), second = peer();
  const Process llm = start(first, "llm"), rogue = start(second, "rogue");
  Writer of_client(client_pipe(), idle_dump);
  name_by_its_dump(llm, rogue);
  settle();
  EXPECT_FALSE(of_culprit->write());
  ::kill(llm.pid, SIGKILL);
  detectors.callbacks.on_exit(llm.pid);
  bool is_culprit_first = false;
  until([&] {
    is_culprit_first |= of_culprit->write();
    return of_client.write();
  });
  EXPECT_FALSE(is_culprit_first);
  const std::string folder = directory.path() + "/dumps";
  until([&] {
    const auto ids = park::evidence_ids(folder);
    return of_culprit->write() && ids.size() == 1 && !park::dump_path_of(folder, ids.front()).empty();
  });
  const std::string id = park::evidence_ids(folder).front();
  EXPECT_THAT(id, HasSubstr("Z-rogue-" + std::to_string(rogue.pid)));
  EXPECT_EQ(std::filesystem::file_size(park::dump_path_of(folder, id)), culprits_dump.size());
  EXPECT_EQ(detectors.exceptions.size(), 1u) << "it is told once";
}

/// To stop one takes time, and everybody can make up a dump.
TEST_F(ParkedDomain, OfManyCulpritsOneIsStoppedInATurn) {
  constexpr int many = 6;
  Peer command = peer();
  std::vector<Process> rogues;
  for (int i = 0; i < many; ++i) rogues.push_back(start(command, "rogue-" + std::to_string(i)));
  int stops = 0;
  kernel.before_stop = [&](pid_t) {
    ++stops;
    clock.advance(Milliseconds(10));
  };
  Writer of_client(client_pipe(), idle_dump);
  std::vector<Writer> writers;
  for (const Process& rogue : rogues) writers.emplace_back(rogue.pipe, culprits_dump);
  int most = 0;
  until([&] {
    const int before = stops;
    for (Writer& writer : writers) (void)writer.write();
    loop->run_once(Milliseconds(0));
    most = std::max(most, stops - before);
    return stops >= many;
  });
  EXPECT_LE(most, 2) << "one at once, and the next one's turn";
}

// The call said CUDA_SUCCESS in 5 of 7 plays where those who had left had large kernels (H100).
TEST_F(ParkedDomain, ItsCulpritIsEndedAlsoWhereAllOthersHaveLeft) {
  Peer first = peer(), second = peer(), watcher = peer();
  ask(watcher, abi::Subscribe{});
  const Process llm = start(first, "llm"), rogue = start(second, "rogue");
  Writer of_client(client_pipe(), idle_dump);
  name_by_its_dump(llm, rogue);
  ::kill(llm.pid, SIGKILL);
  detectors.callbacks.on_exit(llm.pid);
  until([&] {
    (void)of_culprit->write();
    const bool is_told_so = is_told(watcher, "is ended: its calls");
    return of_client.write() && is_told_so && !lives(rogue);
  });
}

TEST_F(ParkedDomain, ItsCulpritIsEndedAlsoWhereTheDomainIsToldFallenFirst) {
  Peer first = peer(), second = peer(), watcher = peer();
  ask(watcher, abi::Subscribe{});
  const Process llm = start(first, "llm"), rogue = start(second, "rogue");
  Writer of_client(client_pipe(), idle_dump);
  name_by_its_dump(llm, rogue);
  ::kill(llm.pid, SIGKILL);
  detectors.callbacks.on_exit(llm.pid);
  domains.callbacks.on_clients_lost("a");
  until([&] {
    (void)of_culprit->write();
    return is_told(watcher, "is ended: its calls") && !lives(rogue);
  });
}

TEST_F(ParkedDomain, ItsCulpritHasItsOwnErrorWhereItWasAlone) {
  Peer second = peer();
  const Process rogue = start(second, "rogue");
  Writer of_client(client_pipe(), idle_dump);
  of_culprit.emplace(rogue.pipe, culprits_dump);
  until([&] {
    const bool is_through = of_culprit->write();
    return of_client.write() && is_through;
  });
  settle();
  EXPECT_TRUE(lives(rogue));
}

/// Another process has its descriptor, and goes on.
TEST_F(ParkedDomain, TheLoopIsNotKeptBusyByWhoWritesIntoADeadOnesPipe) {
  Peer second = peer();
  const Process rogue = start(second, "rogue");
  const os::Fd others(::open(rogue.pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  Writer of_client(client_pipe(), idle_dump);
  of_culprit.emplace(rogue.pipe, culprits_dump);
  until([&] {
    const bool is_through = of_culprit->write();
    return of_client.write() && is_through;
  });
  settle();
  ::kill(rogue.pid, SIGKILL);
  const std::string more(std::size_t{64} << 10, 'x');
  int reads = 0;
  kernel.before_read = [&] {
    while (reads < 100 && ::write(others.get(), more.data(), more.size()) > 0) {
    }
    ++reads;
  };
  detectors.callbacks.on_exit(rogue.pid);
  kernel.before_read = nullptr;
  EXPECT_GT(reads, 0);
  EXPECT_LT(reads, 10);
}

TEST_F(ParkedDomain, WhoseDumpIsTooLongGoesOnWhereSomebodyElseIsNamed) {
  dumps_bytes_max = 600'000;
  begin(Milliseconds(600'000));
  Peer first = peer(), second = peer();
  const Process large = start(first, "large"), rogue = start(second, "rogue");
  Writer of_client(client_pipe(), idle_dump);
  Writer of_large(
      large.pipe,
      park::test::dump_of({park::test::sms(6), {".cudbg.relfimg.dev0", 7, 0, std::string(900'000, 'c')}}));
  of_culprit.emplace(rogue.pipe, culprits_dump);
  until([&] {
    (void)of_culprit->write();
    return of_large.write() && !detectors.exceptions.empty();
  });
  settle();
  EXPECT_TRUE(lives(large));
}

// The end of a dump says who it was.
TEST_F(ParkedDomain, WhereNobodyIsNamedWhoseDumpIsTooLongIsEnded) {
  dumps_bytes_max = 100'000;
  begin(Milliseconds(600'000));
  Peer first = peer(), second = peer(), watcher = peer();
  ask(watcher, abi::Subscribe{});
  const Process llm = start(first, "llm"), rogue = start(second, "rogue");
  Writer of_client(client_pipe(), idle_dump);
  Writer of_llm(llm.pipe, park::test::dump_of({park::test::sms(6)}));
  Writer of_rogue(rogue.pipe, park::test::dump_of({{".cudbg.relfimg.dev0", 7, 0, std::string(250'000, 'c')},
                                                   park::test::sms(6),
                                                   park::test::lanes(6)}));
  until([&] {
    (void)of_llm.write();
    (void)of_rogue.write();
    return !lives(rogue);
  });
  EXPECT_THAT(told(watcher), testing::Contains(HasSubstr("may be the culprit")));
  EXPECT_TRUE(lives(llm));
}

// On a busy machine: what names it was not there in ten looks, and it got out of its dump.
TEST_F(ParkedDomain, ACulpritThatIsLateToWriteWhatNamesItIsHeldInItsDump) {
  Peer command = peer();
  const Process rogue = start(command, "rogue");
  Writer of_client(client_pipe(), idle_dump);
  const std::string dump = park::test::dump_of(
      park::test::with_sms_after({{".cudbg.relfimg.dev0", 7, 0, std::string(250'000, '\0')},
                                  park::test::sms(6),
                                  park::test::warps(2, false),
                                  park::test::lanes(6)}));
  constexpr std::size_t late_bytes = 60'000;
  const os::Fd stays_open(::open(rogue.pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  Writer beginning(rogue.pipe, dump.substr(0, dump.size() - late_bytes));
  until([&] { return beginning.write(); });
  for (int looks = 0; looks < 100; ++looks) loop->run_once(Milliseconds(5));
  EXPECT_TRUE(detectors.exceptions.empty());
  of_culprit.emplace(rogue.pipe, dump.substr(dump.size() - late_bytes));
  until([&] {
    EXPECT_FALSE(of_culprit->write()) << "it is let go";
    return parking("a")["state"] == "held";
  });
  EXPECT_THAT(parking("a")["culprits"], ElementsAre(rogue.pid));
}

// Its block was on one of the last SMs.
TEST_F(ParkedDomain, ACulpritThatOnlyTheEndOfItsDumpNamesIsEnded) {
  Peer second = peer();
  const Process rogue = start(second, "rogue");
  Writer of_client(client_pipe(), idle_dump);
  Writer of_rogue(rogue.pipe, park::test::dump_of(
                                  {park::test::sms(6), park::test::warps(2, false), park::test::lanes(6)}));
  until([&] {
    (void)of_rogue.write();
    return !lives(rogue);
  });
  EXPECT_EQ(detectors.exceptions.size(), 1u);
}

// Its calls fail by themselves, and its end would make the others stand still (H100).
TEST_F(ParkedDomain, ButNotAfterATrap) {
  Peer second = peer();
  const Process rogue = start(second, "rogue");
  Writer of_client(client_pipe(), idle_dump);
  Writer of_rogue(rogue.pipe, park::test::dump_of(
                                  {park::test::sms(0), park::test::warps(2, true), park::test::lanes(0)}));
  until([&] {
    (void)of_rogue.write();
    return !detectors.exceptions.empty();
  });
  settle();
  EXPECT_TRUE(lives(rogue));
}

// Its kernels stood still for 28 s, and MPS's daemon with them, before the agent killed the server (H200).
class AfterATrap : public ParkedDomain, public testing::WithParamInterface<bool> {
 protected:
  static std::string dump() {
    constexpr std::uint32_t assertion = 12;
    const auto warps = park::test::warps(2, !GetParam());
    return park::test::dump_of(
        GetParam()
            ? park::test::with_sms_after({park::test::sms(assertion), warps, park::test::lanes(assertion)})
            : park::test::with_sms_after({park::test::sms(0), warps, park::test::lanes(0)}));
  }
};

INSTANTIATE_TEST_SUITE_P(OrAnAssertion, AfterATrap, testing::Bool());

TEST_P(AfterATrap, WhoNeverBeginsToDumpIsNotWaitedFor) {
  Peer first = peer(), second = peer(), watcher = peer();
  ask(watcher, abi::Subscribe{});
  start(first, "llm");
  const Process rogue = start(second, "rogue");
  Writer of_client(client_pipe(), idle_dump);
  const std::size_t left_bytes = of_client.left_bytes();
  Writer of_rogue(rogue.pipe, dump());
  until([&] {
    (void)of_rogue.write();
    return parking("a")["state"] == "held";
  });
  EXPECT_EQ(of_client.left_bytes(), left_bytes);
  until([&] { return of_client.write(); });
  EXPECT_THAT(told(watcher), testing::Contains(HasSubstr("never will: it gets the error")));
}

// Seen where very many instances were left behind (H200).
TEST_F(ParkedDomain, AfterAnythingElseWhoNeverBeginsIsWaitedForLongerAndNotForEver) {
  Peer first = peer(), second = peer(), watcher = peer();
  ask(watcher, abi::Subscribe{});
  start(first, "llm");
  const Process rogue = start(second, "rogue");
  Writer of_client(client_pipe(), idle_dump);
  const std::size_t left_bytes = of_client.left_bytes();
  bool is_much_later = false;
  const auto waiting = loop->after(Milliseconds(11'000), [&] { is_much_later = true; });
  name_culprit(rogue);
  until([&] { return is_much_later; });
  EXPECT_EQ(of_client.left_bytes(), left_bytes);
  until([&] { return of_client.write(); });
  EXPECT_THAT(told(watcher), testing::Contains(HasSubstr("never will: it gets the error")));
}

// The driver lets it go on after 4 s for any other exception (H100).
TEST_F(ParkedDomain, AfterAnythingElseItIsWaitedFor) {
  Peer first = peer(), second = peer();
  start(first, "llm");
  const Process rogue = start(second, "rogue");
  bool is_much_later = false;
  const auto waiting = loop->after(Milliseconds(8'000), [&] { is_much_later = true; });
  name_culprit(rogue);
  until([&] { return is_much_later; });
  EXPECT_EQ(parking("a")["state"], "held");
}

/// As its dump tells of it.
fault::Incident exception_in_a(pid_t pid, const std::string& tenant, Monotonic when) {
  fault::Fault signal;
  signal.source = fault::FaultSource::CoreDump;
  signal.fault_class = fault::FaultClass::Sm;
  signal.domain = "a";
  signal.when = when;
  fault::Incident incident;
  incident.id = 1;
  incident.fault_class = fault::FaultClass::Sm;
  incident.domain = "a";
  incident.culprit = {fault::Confidence::Certain, pid, tenant, {}};
  incident.signals = {signal};
  incident.closed = true;
  return incident;
}

// The document is there before its dump, and before the domain falls.
TEST_F(ParkedDomain, WhatIsKnownIsWrittenDownAsSoonAsItsCulpritIsNamed) {
  Peer first = peer(), second = peer();
  const Process llm = start(first, "llm"), rogue = start(second, "rogue");
  name_culprit(rogue);
  const std::string folder = directory.path() + "/dumps";
  const auto read = [&] {
    const auto ids = park::evidence_ids(folder);
    return ids.empty() ? park::Evidence{} : park::read_evidence(folder, ids.front()).value();
  };
  until([&] { return !read().id.empty(); });
  EXPECT_EQ(read().pid, rogue.pid);
  EXPECT_THAT(read().exception.type, HasSubstr("MISALIGNED"));
  EXPECT_THAT(read().affected, IsEmpty()) << "nobody knows yet what becomes of whom";
  Peer watcher = peer();
  ask(watcher, abi::Subscribe{});
  detectors.callbacks.on_incident(exception_in_a(rogue.pid, "rogue", clock.now()));
  domains.callbacks.on_clients_lost("a");
  settle();
  const auto list = nlohmann::json::parse(agent->status_json())["counts"]["past_faults"];
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0]["reports"], nlohmann::json({read().id}));
  EXPECT_EQ(list[0]["culprit"], "rogue");
  EXPECT_EQ(read().fault, list[0]["id"]);
  EXPECT_EQ(read().when, list[0]["at"]);
  ASSERT_EQ(read().affected.size(), 1u);
  EXPECT_EQ(read().affected[0].name, "llm");
  EXPECT_EQ(read().affected[0].became, "lost with its domain");
  EXPECT_EQ(list[0]["touched"],
            nlohmann::json::parse(R"([{"tenant": "llm", "became": "lost with its domain"}])"));
  abi::Event told;
  while (told.what != abi::EventKind::Incident) told = std::get<abi::Event>(watcher.receive()->message);
  EXPECT_EQ(told.fault, list[0]["id"]);
  EXPECT_EQ(told.tenant, "rogue");
  EXPECT_THAT(told.text, HasSubstr("culprit rogue"));
  EXPECT_THAT(told.text, testing::Not(HasSubstr("llm"))) << "it is for the culprit's user, too";
}

// The culprit goes on after a trap when its dump is complete, and may end before that has been read.
TEST_F(ParkedDomain, TheDumpOfACulpritThatEndsAtOnceIsKept) {
  Peer second = peer();
  const Process rogue = start(second, "rogue");
  Writer of_client(client_pipe(), idle_dump);
  Writer of_rogue(rogue.pipe, park::test::dump_of(park::test::with_sms_after(
                                  {park::test::sms(0), park::test::warps(2, true), park::test::lanes(0)})));
  until([&] {
    (void)of_rogue.write();
    return parking("a")["state"] == "held";
  });
  until([&] { return of_client.write(); });
  until([&] { return of_rogue.write(); });
  detectors.callbacks.on_exit(rogue.pid);
  const std::string folder = directory.path() + "/dumps";
  const auto ids = park::evidence_ids(folder);
  ASSERT_EQ(ids.size(), 1u);
  EXPECT_GT(park::read_evidence(folder, ids.front()).value().dump_bytes, 0u);
}

TEST_F(ParkedDomain, ItTakesNobodyAndTellsWhoItWas) {
  Peer first = peer(), second = peer(), watcher = peer();
  start(first, "llm");
  const Process rogue = start(second, "rogue");
  ask(watcher, abi::Subscribe{});
  name_culprit(rogue);
  settle();
  EXPECT_EQ(domains.states["a"], mps::DomainState::Draining);
  EXPECT_EQ(parking("a")["state"], "held");
  EXPECT_THAT(parking("a")["culprits"], ElementsAre(rogue.pid));
  EXPECT_THAT(told(watcher), ElementsAre(HasSubstr("tenant llm cannot leave domain a"),
                                         HasSubstr("domain a is parked: rogue-")));
}

TEST_F(ParkedDomain, WhoHasAStandbyIsHandedOverAndNothingIsFenced) {
  Peer active(kernel, path, {}, mode_of("active")), standby(kernel, path, {}, mode_of("standby"));
  const os::Mapping page = join(active, "llm", abi::Role::Active);
  join(standby, "llm", abi::Role::Standby);
  ask(standby, abi::Ready{});
  detectors.callbacks.on_gpu_opened(active.pid());
  Peer command = peer();
  const Process rogue = start(command, "rogue");
  ASSERT_THAT(parking("a")["not_in_mode"], IsEmpty());
  name_culprit(rogue);
  settle();
  const auto asked = active.receive();
  ASSERT_TRUE(asked);
  EXPECT_TRUE(std::holds_alternative<abi::HandOver>(asked->message));
  EXPECT_EQ(word(page).epoch, 0u) << "it is asked, and not fenced";
}

TEST_F(ParkedDomain, ItFallsAtItsLimit) {
  begin(Milliseconds(50));
  Peer first = peer(), second = peer();
  start(first, "llm");
  const Process rogue = start(second, "rogue");
  Writer of_client(client_pipe(), idle_dump);
  settle();
  EXPECT_FALSE(of_client.write());
  name_culprit(rogue);
  until([&] { return of_client.write(); });
  EXPECT_EQ(parking("a")["state"], "released");
}

TEST_F(ParkedDomain, ItFallsWhenNobodyButItsCulpritIsLeft) {
  Peer first = peer(), second = peer();
  const Process llm = start(first, "llm"), rogue = start(second, "rogue");
  Writer of_client(client_pipe(), idle_dump);
  name_culprit(rogue);
  settle();
  EXPECT_FALSE(of_client.write());
  ::kill(llm.pid, SIGKILL);
  detectors.callbacks.on_exit(llm.pid);
  until([&] { return of_client.write(); });
}

// Whoever killed it: its neighbours would stand still until the limit (H100).
TEST_F(ParkedDomain, ItFallsWhenItsCulpritIsGone) {
  Peer first = peer(), second = peer();
  start(first, "llm");
  const Process rogue = start(second, "rogue");
  Writer of_client(client_pipe(), idle_dump);
  name_culprit(rogue);
  settle();
  EXPECT_FALSE(of_client.write());
  ::kill(rogue.pid, SIGKILL);
  detectors.callbacks.on_exit(rogue.pid);
  until([&] { return of_client.write(); });
}

/// It is lost with the domain, parked or not. Of who is in the mode each goes on (H200).
TEST_F(ParkedDomain, WhoIsNotInTheModeIsInNobodysWay) {
  Peer first = peer(), second = peer();
  const Process llm = start(first, "llm", false), rogue = start(second, "rogue");
  EXPECT_THAT(parking("a")["not_in_mode"], ElementsAre("llm-" + std::to_string(llm.pid)));
  EXPECT_THAT(parking("a")["prevented_by"], IsEmpty());
  name_culprit(rogue);
  EXPECT_EQ(parking("a")["state"], "held");
  EXPECT_THAT(parking("a")["culprits"], ElementsAre(rogue.pid));
}

TEST_F(ParkedDomain, WhereTwoDumpIntoOnePipeItFallsAtOnce) {
  Peer command = peer();
  const Process llm = start(command, "llm");
  Peer child = peer("", park::mode_environment(llm.pipe));
  domains.callbacks.on_clients("a", {clock.now(), {llm.pid, child.pid()}});
  Writer of_llm(llm.pipe, culprits_dump);
  Writer of_client(client_pipe(), idle_dump);
  until([&] { return of_client.write(); });
  EXPECT_EQ(parking("a")["state"], "released");
}

/// An H100 wrote Xid 13 lines that name clients, and an Xid 31, of domains whose clients went on.
TEST_F(ParkedDomain, WhileItIsHeldOnlyItsServersXid43IsAFence) {
  Peer command = peer();
  const Process rogue = start(command, "rogue");
  Peer other = peer();
  start(other, "llm");
  domains.refresh_servers();
  name_culprit(rogue);
  fault::Fault fault;
  fault.source = fault::FaultSource::Xid;
  fault.fault_class = fault::FaultClass::Sm;
  fault.when = clock.now();
  for (const auto& [number, pid] : {std::pair(13, FakeDomains::server_of_a), std::pair(43, rogue.pid)}) {
    fault.xid = number;
    fault.pid = pid;
    uvm_event(rogue.pid);
    hear(fault);
    EXPECT_EQ(parking("a")["state"], "held") << "Xid " << number;
  }
  fault.xid = 43;
  fault.pid = FakeDomains::server_of_a;
  hear(fault);
  EXPECT_EQ(parking("a")["state"], "off");
}

TEST_F(ParkedDomain, AMemoryFaultInTheKernelLogLetsItFall) {
  Peer command = peer(), other = peer();
  const Process rogue = start(command, "rogue"), llm = start(other, "llm");
  uvm_event(rogue.pid);
  name_culprit(rogue);
  uvm_event(rogue.pid);
  EXPECT_EQ(parking("a")["state"], "held") << "that is the exception's own";
  xid_31(llm.pid);
  EXPECT_EQ(parking("a")["state"], "released");
}

/// The line of a killed process came after its end (H100). A process whose end is nobody's is not known.
TEST_F(ParkedDomain, AMemoryFaultThatNamesWhoHasEndedLetsItFall) {
  Peer first = peer(), second = peer();
  const Process rogue = start(first, "rogue"), llm = start(second, "llm");
  name_culprit(rogue);
  const auto end = [&](const Process& process) {
    ::kill(process.pid, SIGKILL);
    detectors.callbacks.on_exit(process.pid);
    detectors.targets.erase(process.pid);
  };
  xid_31(llm.pid + 100'000);
  EXPECT_EQ(parking("a")["state"], "held");
  end(llm);
  EXPECT_EQ(parking("a")["state"], "held");
  xid_31(llm.pid);
  EXPECT_EQ(parking("a")["state"], "released");
}

TEST_F(ParkedDomain, AMemoryFaultThatNamesItsParkingClientLetsItFall) {
  Peer command = peer();
  const Process rogue = start(command, "rogue");
  const pid_t own = client_of("a"), other = client_of("b");
  ASSERT_NE(own, other);
  name_culprit(rogue);
  xid_31(other);
  EXPECT_EQ(parking("a")["state"], "held");
  xid_31(own);
  EXPECT_EQ(parking("a")["state"], "released");
}

// Seen on an H100 after a texture that is none: the driver did not reset the domain, and it took nobody any
// more.
TEST_F(ParkedDomain, ADomainThatDrainsIsNotKeptByItsParkingClient) {
  Peer command = peer();
  const Process llm = start(command, "llm");
  domains.note_fault("a");
  bool is_later = false;
  const auto waiting = loop->after(Milliseconds(1'200), [&] { is_later = true; });
  until([&] { return is_later; });
  EXPECT_EQ(parking("a")["state"], "ready") << "somebody is there, and may have an exception yet";
  ::kill(llm.pid, SIGKILL);
  detectors.callbacks.on_exit(llm.pid);
  until([&] { return parking("a")["state"] == "off"; });
}

TEST_F(ParkedDomain, AfterItsFallItHasANewClient) {
  Peer command = peer();
  const Process rogue = start(command, "rogue");
  name_culprit(rogue);
  domains.callbacks.on_clients_lost("a");
  settle();
  EXPECT_EQ(parking("a")["state"], "off");
  domains.states.erase("a");
  until([&] { return parking("a")["state"] == "ready"; });
}

// Seen on the software GPU: it would have been parked for ever, with nobody in it.
TEST_F(ParkedDomain, ADomainThatServesAgainHasFallenAlsoWhereNobodySaidSo) {
  begin(Milliseconds(50));
  std::vector<pid_t> clients = os::children_of(kernel, os::own_pid());
  Peer command = peer();
  const Process rogue = start(command, "rogue");
  Writer of_client(client_pipe(), idle_dump);
  name_culprit(rogue);
  until([&] { return of_client.write() && parking("a")["state"] == "released"; });
  for (const pid_t pid : clients) ::kill(pid, SIGKILL);
  domains.states.erase("a");
  until([&] { return parking("a")["state"] == "ready"; });
}

TEST_F(ParkedDomain, ItsParkingClientIsToBlameForNothing) {
  Peer command = peer();
  const pid_t ours = client_of("a"), llm = start(command, "llm").pid;
  domains.callbacks.on_clients("a", {clock.now(), {ours, llm}});
  EXPECT_THAT(detectors.own_clients, ElementsAre(ours));
  EXPECT_THAT(detectors.clients["a"], ElementsAre(llm));
}

TEST_F(ParkedDomain, DumpsOfWhenItCouldNotBeParkedLeaveNothingBehind) {
  const std::vector<pid_t> clients = os::children_of(kernel, os::own_pid());
  Peer first = peer(), second = peer();
  const Process llm = start(first, "llm"), rogue = start(second, "rogue");
  domains.states["a"] = mps::DomainState::Restarting;  // the domain gets no other client
  for (const pid_t pid : clients) ::kill(pid, SIGKILL);
  until([&] { return parking("a")["state"] == "off"; });
  name_by_its_dump(llm, rogue);
  until([&] { return of_culprit->write(); });
  for (const pid_t pid : {llm.pid, rogue.pid}) ::kill(pid, SIGKILL);
  domains.callbacks.on_clients_lost("a");
  settle();
  domains.states.erase("a");
  until([&] { return parking("a")["state"] == "ready"; });
  expect_to_wait_for_all_to_begin();
}

// Found on an H100: the next fault's dumps were read as they came, in 19 of 242 plays, and once all stood
// still.
TEST_F(ParkedDomain, WhoEndsAfterTheFallLeavesNothingBehind) {
  Peer first = peer(), second = peer(), third = peer();
  const Process llm = start(first, "llm"), other = start(second, "other"), rogue = start(third, "rogue");
  const std::string client = client_pipe();
  Writer of_other(other.pipe, idle_dump);
  name_by_its_dump(llm, rogue);
  until([&] { return of_other.write(); });
  domains.callbacks.on_clients_lost("a");
  settle();
  for (const pid_t pid : {llm.pid, other.pid, rogue.pid}) {
    ::kill(pid, SIGKILL);
    while (!kernel.try_wait(pid).value()) {
    }
    detectors.callbacks.on_exit(pid);
  }
  domains.states.erase("a");
  until([&] { return parking("a")["state"] == "ready" && client_pipe() != client; });
  expect_to_wait_for_all_to_begin();
}

TEST_F(ParkedDomain, ACulpritThatOutlivesItsDomainIsEnded) {
  Peer command = peer();
  const Process rogue = start(command, "rogue");
  name_culprit(rogue);
  domains.callbacks.on_clients_lost("a");
  until([&] {
    const auto ended = kernel.try_wait(rogue.pid);
    return ended && *ended && (*ended)->signal == SIGKILL;
  });
}

TEST_F(AgentTest, WithoutALimitNobodyIsInTheMode) {
  Peer command = peer();
  const abi::Message answer = ask(command, abi::Place{"llm", abi::Role::Active});
  for (const auto& [name, value] : std::get<abi::Placed>(answer).environment)
    EXPECT_FALSE(park::is_of_mode(name)) << name;
}

}  // namespace
}  // namespace firebreak::agent
