// SPDX-License-Identifier: Apache-2.0
/// Processes that put themselves into the core dump mode by the driver's calls.
#include "tests/doubles/agent/parked_domain_test_support.h"

namespace firebreak::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ModeByCalls : public ParkedDomain {
 protected:
  /// A tenant that `firebreak run` has not started, and has a context.
  Peer joined(const std::string& name) {
    Peer made = peer();
    join(made, name, abi::Role::Active);
    detectors.callbacks.on_gpu_opened(made.pid());
    settle();
    return made;
  }
  /// Empty: it is given none.
  std::string pipe_for(Peer& peer) {
    peer.send(abi::GiveCoreDumpPipe{});
    settle();
    auto received = peer.receive();
    const auto* pipe = received ? std::get_if<abi::CoreDumpPipe>(&received->message) : nullptr;
    if (pipe == nullptr) return {};
    EXPECT_EQ(received->descriptors.size(), 1U);
    if (received->descriptors.size() == 1) {
      EXPECT_EQ(kernel.read_link("/proc/self/fd/" + std::to_string(received->descriptors[0].get())).value(),
                pipe->path);
    }
    return pipe->path;
  }
  /// Its dump goes there, and it stands still in it.
  void name_by(const std::string& pipe) { name_culprit({0, pipe, {}}); }
  std::string named(const std::string& tenant, const Peer& peer) {
    return tenant + "-" + std::to_string(peer.pid());
  }
  nlohmann::json not_in_mode() { return parking("a")["not_in_mode"]; }
  nlohmann::json prevented_by() { return parking("a")["prevented_by"]; }
};

TEST_F(ModeByCalls, WhoWasNotStartedByRunCanBeInTheMode) {
  Peer watcher = peer(), llm = joined("llm");
  ask(watcher, abi::Subscribe{});
  EXPECT_THAT(not_in_mode(), ElementsAre(named("llm", llm)));
  const std::string pipe = pipe_for(llm);
  EXPECT_THAT(pipe, testing::MatchesRegex(directory.path() + "/dumps/pipes/by-calls-" +
                                          std::to_string(llm.pid()) + "-[0-9]+-[0-9a-f]{16}\\.pipe"));
  EXPECT_TRUE(os::is_fifo_of(pipe, ::geteuid()));
  EXPECT_EQ(pipe_for(llm), pipe) << "asked again, since an answer may be lost";
  EXPECT_THAT(not_in_mode(), ElementsAre(named("llm", llm))) << "it has not said that it is";
  ask(llm, abi::CoreDumpMode{});
  EXPECT_THAT(not_in_mode(), IsEmpty());
  EXPECT_THAT(told(watcher),
              ElementsAre(named("llm", llm) + " is in the core dump mode by the driver's calls"));
  name_by(pipe);
  EXPECT_THAT(parking("a")["culprits"], ElementsAre(llm.pid()));
}

// What it says of that may come late, or not at all: it stood still in open() for good.
TEST_F(ModeByCalls, WhoDumpsIsInTheModeWhateverItHasSaid) {
  Peer llm = joined("llm");
  const std::string pipe = pipe_for(llm);
  EXPECT_THAT(not_in_mode(), ElementsAre(named("llm", llm)));
  name_by(pipe);
  EXPECT_THAT(parking("a")["culprits"], ElementsAre(llm.pid()));
}

TEST_F(ModeByCalls, WhoCannotBeIsStillInTheWay) {
  Peer watcher = peer(), llm = joined("llm");
  ask(watcher, abi::Subscribe{});
  const std::string pipe = pipe_for(llm);
  ask(llm, abi::CoreDumpMode{"the driver\nrefuses"});
  EXPECT_THAT(not_in_mode(), ElementsAre(named("llm", llm)));
  EXPECT_THAT(told(watcher),
              ElementsAre(named("llm", llm) + " cannot be in the core dump mode: the driver?refuses"));
  EXPECT_FALSE(os::is_there(pipe));
}

TEST_F(ModeByCalls, WhoSaysSoWithoutAPipeIsNot) {
  Peer llm = joined("llm");
  ask(llm, abi::CoreDumpMode{});
  EXPECT_THAT(not_in_mode(), ElementsAre(named("llm", llm)));
}

TEST_F(ModeByCalls, WhatOneSaysIsOfItAlone) {
  Peer llm = joined("llm"), rogue = joined("rogue");
  EXPECT_NE(pipe_for(llm), "");
  EXPECT_NE(pipe_for(rogue), "");
  ask(rogue, abi::CoreDumpMode{});
  EXPECT_THAT(not_in_mode(), ElementsAre(named("llm", llm)));
}

TEST_F(ModeByCalls, TheNextAgentKnowsWhoIs) {
  Peer llm = joined("llm");
  const std::string pipe = pipe_for(llm);
  ask(llm, abi::CoreDumpMode{});
  begin(Milliseconds(600'000));
  EXPECT_TRUE(os::is_there(pipe));
  EXPECT_THAT(not_in_mode(), IsEmpty());
  detectors.callbacks.on_gpu_opened(llm.pid());
  EXPECT_THAT(not_in_mode(), IsEmpty());
  name_by(pipe);
}

// Its process has executed another program, which has no settings yet, or it asked and was not heard of any
// more.
TEST_F(ModeByCalls, WhoAsksAgainIsNotInTheModeBeforeItSaysSo) {
  Peer llm = joined("llm");
  const std::string pipe = pipe_for(llm);
  ask(llm, abi::CoreDumpMode{});
  EXPECT_THAT(not_in_mode(), IsEmpty());
  EXPECT_EQ(pipe_for(llm), pipe);
  EXPECT_THAT(not_in_mode(), ElementsAre(named("llm", llm)));
  ask(llm, abi::CoreDumpMode{});
  EXPECT_THAT(not_in_mode(), IsEmpty());
  name_by(pipe);
}

TEST_F(ModeByCalls, ForTheNextAgentWhoHasNotSaidSoIsNot) {
  Peer llm = joined("llm");
  const std::string pipe = pipe_for(llm);
  begin(Milliseconds(600'000));
  detectors.callbacks.on_gpu_opened(llm.pid());
  EXPECT_THAT(not_in_mode(), ElementsAre(named("llm", llm)));
  llm.reconnect();
  settle();
  EXPECT_EQ(pipe_for(llm), pipe);
  ask(llm, abi::CoreDumpMode{});
  EXPECT_THAT(not_in_mode(), IsEmpty());
}

TEST_F(ModeByCalls, MpsIsAskedWhoseClientSomebodyIs) {
  Peer stranger = peer();
  domains.asked_for_clients.clear();
  stranger.send(abi::GiveCoreDumpPipe{});
  settle();
  auto received = stranger.receive();
  const auto* refused = received ? std::get_if<abi::Refused>(&received->message) : nullptr;
  ASSERT_NE(refused, nullptr);
  EXPECT_TRUE(refused->not_yet);
  EXPECT_THAT(domains.asked_for_clients, ElementsAre("a", "b"));
  EXPECT_EQ(pipe_for(stranger), "");
  EXPECT_THAT(domains.asked_for_clients, ElementsAre("a", "b")) << "not each time";
  domains.callbacks.on_clients("a", {clock.now(), {stranger.pid()}});
  EXPECT_THAT(not_in_mode(), ElementsAre(std::to_string(stranger.pid())));
  EXPECT_NE(pipe_for(stranger), "");
  ask(stranger, abi::CoreDumpMode{});
  EXPECT_THAT(not_in_mode(), IsEmpty());
}

// The stranger is nobody's tenant, and its domain fell under it at once.
TEST_F(ModeByCalls, AStrangerIsWaitedForUntilItEnds) {
  Peer stranger = peer(), command = peer();
  domains.callbacks.on_clients("a", {clock.now(), {stranger.pid()}});
  const std::string pipe = pipe_for(stranger);
  ask(stranger, abi::CoreDumpMode{});
  const Process rogue = start(command, "rogue");
  Writer of_client(client_pipe(), idle_dump), of_stranger(pipe, idle_dump);
  name_culprit(rogue);
  bool is_later = false;
  const auto waiting = loop->after(Milliseconds(100), [&] { is_later = true; });
  until([&] { return is_later; });
  EXPECT_EQ(parking("a")["state"], "held");
  stranger.end(kernel);
  detectors.callbacks.on_exit(stranger.pid());
  until([&] { return parking("a")["state"] == "released"; });
}

TEST_F(ModeByCalls, WhoseEnvironmentSaysSoNeedsNoOther) {
  Peer placed = peer("", mode_of("own"));
  join(placed, "placed", abi::Role::Active);
  detectors.callbacks.on_gpu_opened(placed.pid());
  EXPECT_THAT(not_in_mode(), IsEmpty());
  EXPECT_EQ(pipe_for(placed), "");
}

// The wrong one of the two was named, and ended.
TEST_F(ModeByCalls, AChildWithItsParentsPipeIsInTheWay) {
  Peer command = peer();
  const Process llm = start(command, "llm");
  Peer child = peer("", park::mode_environment(llm.pipe));
  domains.callbacks.on_clients("a", {clock.now(), {llm.pid, child.pid()}});
  EXPECT_THAT(prevented_by(), ElementsAre(std::to_string(child.pid())));
  child.end(kernel);
  detectors.callbacks.on_exit(child.pid());
  EXPECT_THAT(prevented_by(), IsEmpty());
  EXPECT_TRUE(os::is_there(llm.pipe));
}

/// A compiler's worker, say: its driver, which is ours, dumps nowhere.
TEST_F(ModeByCalls, AChildWithASpareIsInNobodysWay) {
  Peer command = peer();
  const Process llm = start(command, "llm");
  Environment environment = park::mode_environment(llm.pipe);
  environment.emplace_back("FIREBREAK_SPARE", "/mps/a:/mps/b");
  environment.emplace_back("FIREBREAK_SPARE_DUMPS", llm.pipe + ":" + llm.pipe);
  Peer child = peer("", environment);
  domains.callbacks.on_clients("a", {clock.now(), {llm.pid, child.pid()}});
  EXPECT_THAT(prevented_by(), IsEmpty());
  EXPECT_THAT(not_in_mode(), ElementsAre(std::to_string(child.pid())));
  Process rogue = start(command, "rogue");
  name_culprit(rogue);
  EXPECT_THAT(parking("a")["culprits"], ElementsAre(rogue.pid));
}

TEST_F(ModeByCalls, NothingIsLeftOfTheDead) {
  Peer llm = joined("llm"), other = joined("other");
  const std::string entered = pipe_for(llm), offered = pipe_for(other);
  ask(llm, abi::CoreDumpMode{});
  for (Peer* each : {&llm, &other}) {
    each->end(kernel);
    detectors.callbacks.on_exit(each->pid());
  }
  EXPECT_FALSE(os::is_there(entered));
  EXPECT_FALSE(os::is_there(offered));
  const std::string of_before =
      directory.path() + "/dumps/pipes/by-calls-" + std::to_string(::getpid()) + "-7-x.pipe";
  ASSERT_TRUE(os::make_fifo(of_before));
  begin(Milliseconds(600'000));
  EXPECT_FALSE(os::is_there(of_before)) << "of another process of that number";
}

// An agent before has put it into the mode. Its driver, and with it all of its domain, waited for a reader
// for ever.
TEST_F(AgentTest, AnAgentThatParksNothingReadsTheDumpsOfWhoIsInTheMode) {
  AgentOptions options{path, {{"LD_LIBRARY_PATH", "/soft"}}};
  options.dump_directory = directory.path() + "/dumps";
  ASSERT_TRUE(os::make_directories(options.dump_pipe_directory()));
  agent.reset();
  agent = start_agent(options);
  const std::string pipe = options.dump_pipe_directory() + "/before.pipe";
  ASSERT_TRUE(os::make_fifo(pipe));
  Peer llm = peer("", park::mode_environment(pipe));
  join(llm, "llm", abi::Role::Active);
  for (int dump = 0; dump < 2; ++dump) {
    Writer writer(pipe, idle_dump);
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    bool is_written = false;
    while (!is_written && std::chrono::steady_clock::now() < limit) {
      loop->run_once(Milliseconds(5));
      is_written = writer.write();
    }
    EXPECT_TRUE(is_written) << "dump " << dump;
    settle();
  }
}

TEST_F(AgentTest, WithoutALimitNobodyIsGivenAPipe) {
  Peer llm = peer();
  join(llm, "llm", abi::Role::Active);
  EXPECT_TRUE(std::holds_alternative<abi::Done>(ask(llm, abi::GiveCoreDumpPipe{})));
}

}  // namespace
}  // namespace firebreak::agent
