// SPDX-License-Identifier: Apache-2.0
/// Tenants with a spare driver instance. The test does what their processes would do.
#include "agent/parking/spares.h"
#include "ground/os/descriptors.h"
#include "shared/abi/spare_page.h"
#include "tests/doubles/agent/parked_domain_test_support.h"
#include "tests/doubles/agent/spare_page_test_support.h"

namespace firebreak::agent {
namespace {

using abi::DomainRule;
using abi::SpareState;
using testing::_;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

/// One that leaves its domain.
class Page : public PageOfSpare {
 public:
  using PageOfSpare::PageOfSpare;
  /// Leaves as asked.
  void leave_for(const std::string& domain) {
    works_in(domain, "");
    page().state = SpareState::Unprotected;
    page().flips.fetch_add(1);
    constexpr std::array<std::uint32_t, abi::move_parts> took_us = {100, 200, 3'000, 1'500, 400};
    std::ranges::copy(took_us, page().last_move_us.begin());
    page().answered = page().asked_to_leave.load();
  }
  bool is_asked() const { return page().asked_to_leave.load() != page().answered.load(); }
};

class AgentSpares : public ParkedDomain {
 protected:
  Process start_with_spare(Peer& command, const std::string& name, const Page& page) {
    abi::Place place{name, abi::Role::Active};
    place.spare = true;
    return start(command, place, true, page.descriptor());
  }
  static std::string variable(const Process& process, const std::string& name) {
    for (const auto& [its, value] : process.environment) {
      if (its == name) return value;
    }
    return {};
  }
  /// Returns the pipe of the process's dump in the second of its domains.
  static std::string second_pipe(const Process& process) {
    const std::string both = variable(process, "FIREBREAK_SPARE_DUMPS");
    return both.substr(both.find(':') + 1);
  }
  /// Starts a process that has left domain a, where it began, for b.
  Process start_moved(Peer& command, Page& page) {
    Process llm = start_with_spare(command, "llm", page);
    page.leave_for("b");
    until([&] { return tenant("llm")["active"]["domain"] == "b"; });
    return llm;
  }
  /// Empty: nothing is told.
  std::string domain_that_is_told(const fault::Fault& fault, Peer& watcher) {
    ask(watcher, abi::Subscribe{});
    hear(fault);
    const auto event = watcher.receive();
    return event ? std::get<abi::Event>(event->message).domain : "";
  }
  /// Makes the fault as UVM tells it; in domain a, where whoever follows processes saw it begin.
  fault::Fault memory_fault_of(const Process& process) {
    fault::Fault fault;
    fault.source = fault::FaultSource::UvmEvent;
    fault.fault_class = fault::FaultClass::MmuReplayable;
    fault.domain = "a";
    fault.pid = process.pid;
    fault.conclusive = true;
    fault.when = clock.now();
    return fault;
  }
  nlohmann::json tenant(const std::string& name) {
    const auto status = nlohmann::json::parse(agent->status_json());
    for (const auto& each : status["tenants"]) {
      if (each["name"] == name) return each;
    }
    return nullptr;
  }
  std::vector<std::string> told(Peer& watcher, abi::EventKind what) {
    std::vector<std::string> texts;
    while (auto received = watcher.receive()) {
      const auto& event = std::get<abi::Event>(received->message);
      if (event.what == what) texts.push_back(event.tenant + ": " + event.text);
    }
    return texts;
  }
};

TEST_F(AgentSpares, TheProgramIsStartedInTheAnchorsDomain) {
  Page page;
  Peer command = peer();
  const Process llm = start_with_spare(command, "llm", page);
  EXPECT_EQ(variable(llm, "CUDA_MPS_PIPE_DIRECTORY"), "/mps/anchor");
  EXPECT_EQ(variable(llm, "FIREBREAK_SPARE"), "/mps/a:/mps/b");
  EXPECT_EQ(variable(llm, "FIREBREAK_SPARE_DUMPS"), llm.pipe + ":" + second_pipe(llm));
  EXPECT_TRUE(std::filesystem::is_fifo(second_pipe(llm)));
  EXPECT_EQ(tenant("llm")["spare"]["state"], "protected");
  EXPECT_EQ(tenant("llm")["spare"]["domain"], "b");
  EXPECT_EQ(tenant("llm")["active"]["domain"], "a");
}

TEST_F(AgentSpares, StatusSaysWhatItTakesOfTheGpusMemoryAndWhatWasDoneAgain) {
  Page page;
  page->own_driver_mib = 290;
  page->spare_mib = 295;
  page->redone = 7;
  Peer command = peer();
  start_with_spare(command, "llm", page);
  until(
      [&] { return tenant("llm")["spare"].is_object() && tenant("llm")["spare"]["gpu_memory_mib"] == 585; });
  EXPECT_EQ(tenant("llm")["spare"]["gpu_memory_mib"], 585);
  EXPECT_EQ(tenant("llm")["spare"]["redone"], 7);
}

TEST_F(AgentSpares, WhereThereIsNoDomainForAnchorsNobodyIsPlacedWithOne) {
  domains.has_anchors = false;
  Peer command = peer();
  abi::Place place{"llm", abi::Role::Active};
  place.spare = true;
  EXPECT_THAT(std::get<abi::Refused>(ask(command, place)).reason, HasSubstr("no spare driver instances"));
}

TEST_F(AgentSpares, WhoWantsOneWhereThereIsOneIsPlacedWithoutOneToo) {
  domains.has_anchors = false;
  Peer command = peer();
  abi::Place place{"llm", abi::Role::Active};
  place.spare_if_there_is_one = true;
  const auto without = std::get<abi::Placed>(ask(command, place));
  EXPECT_THAT(without.environment, Not(Contains(Pair("FIREBREAK_SPARE", _))));
  EXPECT_THAT(without.environment, Contains(Pair("CUDA_MPS_PIPE_DIRECTORY", "/mps/a")));
  domains.has_anchors = true;
  Peer other = peer();
  place.tenant = "other";
  const auto with = std::get<abi::Placed>(ask(other, place));
  EXPECT_THAT(with.environment, Contains(Pair("FIREBREAK_SPARE", "/mps/a:/mps/b")));
}

// Instances of a driver have a GPU address space each.
TEST_F(AgentSpares, WhenAnotherInstanceHasComeUpItsFaultsAreHeard) {
  Page page;
  Peer command = peer();
  const Process llm = start_with_spare(command, "llm", page);
  until([&] { return !detectors.looked_again.empty(); });
  EXPECT_THAT(detectors.looked_again, Each(llm.pid));
  const std::size_t before = detectors.looked_again.size();
  page.leave_for("b");
  until([&] { return tenant("llm")["active"]["domain"] == "b"; });
  EXPECT_GT(detectors.looked_again.size(), before);
}

TEST_F(AgentSpares, WhoHasOneIsAskedToLeaveAParkedDomainAndThenItFalls) {
  Page page;
  Peer first = peer(), second = peer(), watcher = peer();
  start_with_spare(first, "llm", page);
  const Process rogue = start(second, "rogue");
  ask(watcher, abi::Subscribe{});
  Writer of_client(client_pipe(), idle_dump);
  EXPECT_FALSE(page.is_asked());
  name_culprit(rogue);
  EXPECT_TRUE(page.is_asked());
  EXPECT_EQ(page->rules[0].load(), DomainRule::Held) << "nothing in it is to be given back";
  EXPECT_EQ(page->rules[1].load(), DomainRule::Open);
  EXPECT_FALSE(of_client.write());
  page.leave_for("b");
  until([&] { return of_client.write(); });
  EXPECT_EQ(tenant("llm")["active"]["domain"], "b");
  EXPECT_EQ(tenant("llm")["spare"]["moves"], 1);
  EXPECT_EQ(page->asked_to_leave.load(), 1u);
  EXPECT_EQ(page->rules[0].load(), DomainRule::Held) << "it has not fallen yet";
  domains.callbacks.on_clients_lost("a");
  until([&] { return page->rules[0].load() == DomainRule::Closed; });
  domains.states.erase("a");
  until([&] { return page->rules[0].load() == DomainRule::Open; });
  EXPECT_THAT(told(watcher, abi::EventKind::Moved),
              ElementsAre("llm: from domain a to domain b (calls 0.1 ms, spare 0.2, work 3.0, variables 1.5, "
                          "guard ranges 0.4)"));
  EXPECT_EQ(page->asked_to_leave.load(), 1u) << "it works elsewhere when its old domain has fallen";
}

// The process may be an interpreter that still reads its libraries.
TEST_F(AgentSpares, WhoHasNotComeToCudaHoldsNoParkedDomain) {
  opens_gpu = false;
  Page without_work;
  without_work.works_in("", "");
  Peer first = peer(), second = peer(), third = peer();
  start_with_spare(first, "with-a-page", without_work);
  abi::Place place{"without-one", abi::Role::Active};
  place.spare = true;
  start(second, place, true, -1);
  opens_gpu = true;
  const Process rogue = start(third, "rogue");
  Peer watcher = peer();
  ask(watcher, abi::Subscribe{});
  Writer of_client(client_pipe(), idle_dump);
  name_culprit(rogue);
  until([&] { return of_client.write(); });
  EXPECT_EQ(parking("a")["state"], "released") << "nobody works there: it is to fall";
  EXPECT_THAT(ParkedDomain::told(watcher), Not(Contains(HasSubstr("never will"))))
      << "nobody waited for them";
}

TEST_F(AgentSpares, WhoComesToCudaWithoutBeingFollowedYetHoldsIt) {
  Page page;  // found when it is looked for, which it was not for a while
  Peer first = peer(), second = peer();
  start_with_spare(first, "llm", page);
  const Process rogue = start(second, "rogue");
  Writer of_client(client_pipe(), idle_dump);
  name_culprit(rogue);
  for (int i = 0; i < 50; ++i) settle();
  EXPECT_EQ(parking("a")["state"], "held");
  EXPECT_FALSE(of_client.write());
}

// Its kernels would keep the others from being halted for theirs: they stood still for 4 s (H100).
TEST_F(AgentSpares, WhoCouldLeaveAtOnceIsNotReadBeforeTheOthersHaveBegunEither) {
  Page page;
  Peer first = peer(), second = peer();
  const Process llm = start_with_spare(first, "llm", page);
  start(second, "slow");
  Writer of_llm(llm.pipe, idle_dump);
  settle();
  EXPECT_FALSE(of_llm.write());
  EXPECT_FALSE(page.is_asked());
}

TEST_F(AgentSpares, TheCulpritIsNotAsked) {
  Page page;
  Peer first = peer();
  const Process llm = start_with_spare(first, "llm", page);
  name_culprit(llm);
  settle();
  EXPECT_FALSE(page.is_asked());
}

TEST_F(AgentSpares, ItsDumpInTheDomainOfItsSpareIsReadAndItStays) {
  Page page;
  Peer first = peer();
  const Process llm = start_with_spare(first, "llm", page);
  Writer of_spare(second_pipe(llm), idle_dump);
  until([&] { return of_spare.write(); });
  settle();
  EXPECT_NE(parking("b")["state"], "ready") << "somebody there has raised an exception";
  EXPECT_EQ(parking("a")["state"], "ready");
  EXPECT_FALSE(page.is_asked());
  EXPECT_EQ(page->rules[1].load(), DomainRule::Held);
}

// Each exception would otherwise cost all its neighbours the time until nobody is waited for any more.
TEST_F(AgentSpares, AnInstanceThatIsNotThereIsNotWaitedFor) {
  Page page;
  page.works_in("b", "");
  Peer first = peer(), second = peer();
  start_with_spare(first, "llm", page);
  const Process rogue = start(second, "rogue");
  until([&] { return tenant("llm")["active"]["domain"] == "b"; });
  Writer of_client(client_pipe(), idle_dump);
  of_culprit.emplace(rogue.pipe, culprits_dump);
  for (int i = 0; i < 50 && parking("a")["state"] != "held"; ++i) {
    (void)of_culprit->write();
    settle();
  }
  EXPECT_EQ(parking("a")["state"], "held") << "with no clock having gone on";
}

// Seen on an H100: the next fault's dumps were read as they came, and it stood still for 4 s.
TEST_F(AgentSpares, OneWhoseDumpIsReadAfterTheFallLeavesNothingBehind) {
  Page page;
  Peer first = peer(), second = peer();
  const Process llm = start_with_spare(first, "llm", page), rogue = start(second, "rogue");
  const std::string client = client_pipe();
  Writer of_llm(llm.pipe, idle_dump);
  name_culprit(rogue);
  page.leave_for("b");
  until([&] { return tenant("llm")["active"]["domain"] == "b"; });
  domains.callbacks.on_clients_lost("a");
  settle();
  ::kill(rogue.pid, SIGKILL);
  while (!kernel.try_wait(rogue.pid).value()) {
  }
  detectors.callbacks.on_exit(rogue.pid);
  settle();
  until([&] { return of_llm.write(); });
  domains.states.erase("a");
  until([&] { return parking("a")["state"] == "ready" && client_pipe() != client; });
  expect_to_wait_for_all_to_begin();
}

// The process was elsewhere then, and its next spare is there now.
TEST_F(AgentSpares, OneThatHadNotBegunToDumpWhenADomainFellIsWaitedForThereLater) {
  Page page;
  page.works_in("b", "");
  Peer first = peer(), second = peer();
  start_with_spare(first, "llm", page);
  until([&] { return tenant("llm")["active"]["domain"] == "b"; });
  const std::string client = client_pipe();
  domains.callbacks.on_clients_lost("a");
  settle();
  domains.states.erase("a");
  until([&] { return parking("a")["state"] == "ready" && client_pipe() != client; });
  page.works_in("b", "a");
  const std::string next_client = newest_pipe();
  const Process rogue = start(second, "rogue");
  Writer of_client(next_client, idle_dump);
  Writer of_rogue(rogue.pipe, culprits_dump);
  const std::size_t left_bytes = of_rogue.left_bytes();
  settle();
  EXPECT_FALSE(of_rogue.write());
  EXPECT_EQ(of_rogue.left_bytes(), left_bytes) << "it is read before the spare has begun";
}

/// One that left a parked domain, which fell, and has its next instance there.
class OneThatHasLeft : public AgentSpares {
 protected:
  void leave_and_let_fall() {
    const Process rogue = start(*second_, "rogue");
    Writer of_client(client_pipe(), idle_dump);
    Writer of_llm(llm_.pipe, idle_dump);
    of_culprit.emplace(rogue.pipe, culprits_dump);
    until([&] {
      (void)of_culprit->write();
      (void)of_llm.write();
      return parking("a")["state"] == "held" && of_llm.write();
    });
    page_.leave_for("b");
    until([&] { return of_client.write(); });
    of_culprit.reset();
    ::kill(rogue.pid, SIGKILL);
    detectors.callbacks.on_exit(rogue.pid);
    domains.callbacks.on_clients_lost("a");
    domains.states.erase("a");
    until([&] { return parking("a")["state"] == "ready"; });
    page_.works_in("b", "a");
    page_->state = SpareState::Protected;
    settle();
  }
  void expect_to_be_heard() {
    Writer again(llm_.pipe, idle_dump);
    until([&] { return again.write(); });
    until([&] { return parking("a")["state"] != "ready"; });
  }
  void SetUp() override {
    AgentSpares::SetUp();
    first_.emplace(peer());
    second_.emplace(peer());
    llm_ = start_with_spare(*first_, "llm", page_);
  }
  Page page_;
  std::optional<Peer> first_, second_;
  Process llm_;
};

TEST_F(OneThatHasLeft, CanDumpAgainThere) {
  leave_and_let_fall();
  expect_to_be_heard();
}

TEST_F(OneThatHasLeft, CanDumpAgainThereIfItsDumpEndedAfterTheFall) {
  os::Fd still_open = os::RealKernel().open(llm_.pipe, O_WRONLY | O_NONBLOCK).value();
  leave_and_let_fall();
  still_open.reset();
  settle();
  expect_to_be_heard();
}

TEST_F(AgentSpares, WhoeverHasOneIsAskedWhereADomainFallsUnparked) {
  Page page;
  Peer first = peer();
  start_with_spare(first, "llm", page);
  domains.callbacks.on_clients_lost("b");
  EXPECT_FALSE(page.is_asked());
  domains.callbacks.on_clients_lost("a");
  EXPECT_TRUE(page.is_asked());
}

TEST_F(AgentSpares, WhatItDoesAfterAMoveIsOfItsNewDomain) {
  Page page;
  Peer first = peer(), watcher = peer();
  EXPECT_EQ(domain_that_is_told(memory_fault_of(start_moved(first, page)), watcher), "b");
}

TEST_F(AgentSpares, WhoKnowsTheDomainIsNotToldAnotherByAPage) {
  Page page;
  Peer first = peer(), watcher = peer();
  fault::Fault fault = memory_fault_of(start_moved(first, page));
  fault.source = fault::FaultSource::MpsLog;
  EXPECT_EQ(domain_that_is_told(fault, watcher), "a") << "its instance that was left, say";
}

// The process writes into its page that it works among others, and faults elsewhere.
TEST_F(AgentSpares, WhereItSaysThatItWorksNobodyIsFenced) {
  Page page, of_neighbour;
  Peer first = peer(), second = peer();
  const Process rogue = start_with_spare(first, "rogue", page);
  start_with_spare(second, "llm", of_neighbour);
  of_neighbour.leave_for("b");
  page.works_in("b", "a");
  until(
      [&] { return tenant("rogue")["active"]["domain"] == "b" && tenant("llm")["active"]["domain"] == "b"; });
  const int looks = domains.looks_for_faults;
  hear(memory_fault_of(rogue));
  settle();
  EXPECT_EQ(domains.looks_for_faults, looks + 1) << "MPS is to say in which domain it was";
  EXPECT_FALSE(domains.states.contains("b")) << "it takes clients as ever";
  EXPECT_FALSE(of_neighbour.is_asked());
  domains.callbacks.on_clients_lost("b");
  EXPECT_TRUE(of_neighbour.is_asked()) << "MPS has said";
}

TEST_F(AgentSpares, APageThatItsProcessCouldShrinkIsNotLookedAt) {
  Page page(os::MemorySeal::None);
  Peer first = peer();
  start_with_spare(first, "llm", page);
  EXPECT_EQ(tenant("llm")["spare"]["state"], "starting");
  page->state = SpareState::Lost;
  settle();
  EXPECT_EQ(tenant("llm")["spare"]["state"], "starting");
}

TEST_F(AgentSpares, APageOfAnotherVersionIsNotLookedAt) {
  Page page;
  page->version = abi::SparePage::right_version + 1;
  Peer first = peer();
  start_with_spare(first, "llm", page);
  EXPECT_EQ(tenant("llm")["spare"]["state"], "starting");
}

class AgentSparesBehind : public AgentSpares, public testing::WithParamInterface<std::size_t> {};

TEST_P(AgentSparesBehind, OthersThatAreCalledAsItIsAPageIsFoundIfTheyAreFew) {
  const Page page;
  const Page other(os::MemorySeal::None);
  constexpr int first = 100;
  std::vector<std::pair<int, int>> descriptors;
  while (descriptors.size() < GetParam())
    descriptors.emplace_back(other.descriptor(), first + static_cast<int>(descriptors.size()));
  descriptors.emplace_back(page.descriptor(), 2 * first);
  abi::Place place{"llm", abi::Role::Active};
  place.spare = true;
  Peer command = peer();
  start(command, place, true, -1, std::move(descriptors));
  settle();
  const bool is_found = GetParam() < os::most_closer_looks;
  EXPECT_EQ(tenant("llm")["spare"]["state"], is_found ? "protected" : "starting");
}

INSTANTIATE_TEST_SUITE_P(So, AgentSparesBehind,
                         testing::Values(os::most_closer_looks - 1, os::most_closer_looks),
                         [](const auto& many) { return "Many" + std::to_string(many.param); });

// A process writes there what it likes.
TEST_F(AgentSpares, NonsenseInAPageHarmsNobody) {
  Page page;
  page->state = static_cast<SpareState>(77);
  page->active_domain.fill('x');
  page->spare_domain.fill('y');
  page->reason.fill('z');
  Peer first = peer();
  start_with_spare(first, "llm", page);
  EXPECT_EQ(tenant("llm")["spare"]["state"], "unprotected");
  EXPECT_EQ(tenant("llm")["spare"]["domain"], "");
  EXPECT_EQ(tenant("llm")["active"]["domain"], "a");
  EXPECT_EQ(tenant("llm")["spare"]["reason"].get<std::string>().size(), abi::SparePage::text_bytes - 1);
}

TEST_F(AgentSpares, WhatAPageSaysIsShownOnOneLine) {
  Page page;
  write_text(page->reason, "fine\n\x1b[2Jfault tenant=other");
  Peer first = peer();
  start_with_spare(first, "llm", page);
  EXPECT_EQ(tenant("llm")["spare"]["reason"], "fine??[2Jfault tenant=other");
}

TEST_F(AgentSpares, OneThatWritesWithoutEndIsNotToldWithoutEnd) {
  Page page;
  Peer first = peer(), watcher = peer();
  start_with_spare(first, "llm", page);
  ask(watcher, abi::Subscribe{});
  for (int i = 0; i < 40; ++i) {
    write_text(page->reason, "reason " + std::to_string(i));
    page.works_in(i % 2 == 0 ? "b" : "a", "");
    domains.callbacks.on_clients_lost("elsewhere");  // pages are looked at
  }
  std::size_t at_once = told(watcher, abi::EventKind::Spare).size();
  EXPECT_GT(at_once, 2u);
  EXPECT_LE(at_once, 8u);
  clock.advance(std::chrono::seconds(2));
  until([&] { return tenant("llm")["spare"]["reason"] == "reason 39"; });
  EXPECT_EQ(tenant("llm")["active"]["domain"], "a") << "the last word is not lost";
}

// Its next agent would take its word for it.
TEST_F(AgentSpares, ANextAgentKnowsWhereItWorks) {
  Page page;
  Peer first = peer();
  start_with_spare(first, "llm", page);
  page.leave_for("b");
  until([&] { return tenant("llm")["active"]["domain"] == "b"; });
  begin(Milliseconds(600'000));
  EXPECT_EQ(tenant("llm")["active"]["domain"], "b");
}

TEST(SpareEnvironment, IsReadAsItIsWritten) {
  const SpareEnvironment written{{"/mps/a", "/mps/b"}, {"/dumps/1", "/dumps/2"}};
  std::string environment = std::string("PATH=/bin") + '\0' + "FIREBREAK_SPARES=x:y" + '\0';
  for (const auto& [name, value] : written.variables()) environment += name + "=" + value + '\0';
  const auto read = SpareEnvironment::in(environment);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->domains, written.domains);
  EXPECT_EQ(read->dumps, written.dumps);
  EXPECT_FALSE(SpareEnvironment::in("FIREBREAK_SPARE=/mps/a"));
  EXPECT_FALSE(SpareEnvironment::in(""));
}

}  // namespace
}  // namespace firebreak::agent
