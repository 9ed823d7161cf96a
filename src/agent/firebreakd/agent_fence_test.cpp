// SPDX-License-Identifier: Apache-2.0
/// Tests of what an exit is worth as a fence: processes that have what a dead active had on the GPU.
#include <signal.h>

#include "ground/os/descriptors.h"
#include "ground/os/processes.h"
#include "shared/link/status_view.h"
#include "tests/doubles/agent/agent_test_support.h"

namespace firebreak::agent {
namespace {

using testing::HasSubstr;

class AgentFence : public AgentTest {
 protected:
  AgentFence() { subscriber.send(abi::Subscribe{}); }
  /// A child that nobody has ended yet would keep whoever reads our output waiting.
  ~AgentFence() override {
    if (child != 0 && child_lives()) end_child();
  }
  /// Its active has a child of fork() that has its address space.
  ProtectedTenant forking_pair() {
    Peer active = peer("forking"), standby = peer();
    os::Mapping page = join(active, "llm", abi::Role::Active);
    join(standby, "llm", abi::Role::Standby);
    ask(standby, abi::Ready{});
    child = os::children_of(kernel, active.pid()).at(0);
    return {std::move(active), std::move(standby), std::move(page)};
  }
  /// An active without a standby, with such a child, and with memory that outlives it.
  std::pair<Peer, os::Mapping> forking_alone() {
    Peer active = peer("forking");
    os::Mapping page = join(active, "llm", abi::Role::Active);
    child = os::children_of(kernel, active.pid()).at(0);
    const os::Fd descriptor = memory();
    ask(active, abi::Publish{"state", 0x500000000000, 2 << 20}, descriptor.get());
    return {std::move(active), std::move(page)};
  }
  /// Its process ends, and the agent hears of it.
  void die(Peer& peer) {
    const pid_t pid = peer.pid();
    peer.end(kernel);
    detectors.callbacks.on_exit(pid);
  }
  bool child_lives() { return os::is_alive(kernel.read_file(os::proc_folder(child) + "/stat").value_or("")); }
  void end_child() { ASSERT_TRUE(kernel.send_signal(kernel.pidfd_open(child).value(), SIGKILL)); }
  std::optional<pair::Phase> phase() { return link::parse_status(agent->status_json()).tenant("llm")->phase; }
  /// Time goes on meanwhile: who was seen to have something may be waited for.
  template <class Done>
  void run_until(Done done) {
    for (; !done(); clock.advance(Milliseconds(20))) loop->run_once(Milliseconds(20));
  }
  /// The next event of that kind; all of them are of the pair's tenant.
  std::string text_of(const std::string& what) {
    for (;;) {
      loop->run_once(Milliseconds(10));
      while (auto received = subscriber.receive()) {
        const auto* event = std::get_if<abi::Event>(&received->message);
        if (event == nullptr || event->what != abi::event_kind(what)) continue;
        EXPECT_EQ(event->tenant, "llm");
        return event->text;
      }
    }
  }

  Peer subscriber = peer();
  pid_t child = 0;
};

TEST_F(AgentFence, AChildOfTheDeadActiveIsEndedBeforeItsStandbyIsPromoted) {
  auto [active, standby, page] = forking_pair();
  die(active);
  EXPECT_EQ(word(page).epoch, 0u);
  EXPECT_EQ(phase(), pair::Phase::Suspecting);
  EXPECT_THAT(text_of("not fenced"), HasSubstr("still holds the GPU descriptors of the dead active"));
  run_until([&] { return word(page).epoch == 1; });
  EXPECT_FALSE(child_lives());
  EXPECT_THAT(text_of("fenced"), HasSubstr("nobody keeps its GPU descriptors any more"));
}

TEST_F(AgentFence, AProcessThatHasTheNumberOfTheChildByNowIsNotEnded) {
  auto [active, standby, page] = forking_pair();
  const std::string file = os::proc_folder(child) + "/stat";
  std::string stat = kernel.read_file(file).value();
  int looks = 0;
  kernel.before_pidfd = [&](pid_t pid) {  // comes between the look at it and its end, each time
    if (pid != child) return;
    const std::string started = " " + std::string(os::start_time(stat));
    stat.replace(stat.rfind(started), started.size(), started + "0");
    kernel.files[file] = stat;
    ++looks;
  };
  die(active);
  const auto lives = [&] { return os::is_alive(os::RealKernel().read_file(file).value_or("")); };
  run_until([&] { return looks >= 3 || !lives(); });
  kernel.before_pidfd = nullptr;
  EXPECT_TRUE(lives());
  EXPECT_EQ(word(page).epoch, 0u);
}

TEST_F(AgentFence, AnActiveThatIsEndedSinceItsServerHasEndedIsFollowedAfterItsChild) {
  auto [active, standby, page] = forking_pair();
  domains.callbacks.on_clients_lost("a");
  die(active);
  EXPECT_EQ(word(page).epoch, 0u);
  run_until([&] { return word(page).epoch == 1; });
  EXPECT_FALSE(child_lives());
}

TEST_F(AgentFence, AnXidFencesWhateverAChildHas) {
  auto [active, standby, page] = forking_pair();
  die(active);
  xid(FakeDomains::server_of_a);
  EXPECT_EQ(word(page).epoch, 1u);
}

// The process is another tenant's by its own word: its descriptors are waited for.
TEST_F(AgentFence, AProcessOfATenantIsWaitedForAndTold) {
  auto [active, standby, page] = forking_pair();
  ask(subscriber, abi::Adopt{"other", abi::Role::Active, child});
  die(active);
  EXPECT_THAT(text_of("not fenced"), HasSubstr("process " + std::to_string(child)));
  EXPECT_THAT(agent->status_json(), HasSubstr("\"state\": \"held elsewhere\""));
  EXPECT_TRUE(child_lives());
  EXPECT_EQ(word(page).epoch, 0u);
  EXPECT_EQ(phase(), pair::Phase::Suspecting);
  end_child();
  while (child_lives()) {
  }
  detectors.callbacks.on_exit(child);  // the other tenant's, of which the agent has a duplicate by now
  run_until([&] { return word(page).epoch == 1; });
}

// Nothing of it runs on the GPU, and nobody will follow it.
TEST_F(AgentFence, OfAPairThatIsDoneNothingHasToBeFenced) {
  auto [active, standby, page] = forking_pair();
  ask(active, abi::Finish{});
  die(active);
  for (int looks = 0; looks < 20; ++looks) {
    loop->run_once(Milliseconds(20));
    clock.advance(Milliseconds(20));
  }
  end_child();
  bool is_released = false;
  while (!is_released) {
    loop->run_once(Milliseconds(10));
    clock.advance(Milliseconds(20));
    while (auto received = subscriber.receive()) {
      const auto* event = std::get_if<abi::Event>(&received->message);
      if (event == nullptr) continue;
      EXPECT_NE(event->what, abi::EventKind::NotFenced) << event->text;
      is_released |= event->what == abi::EventKind::Released;
    }
  }
}

// Its guard says so. A child that lives on, as a daemon does, is nothing to be told of.
TEST_F(AgentFence, OfAProcessWhoseWorkHasEndedNothingHasToBeFenced) {
  auto [active, page] = forking_alone();
  const os::Fd file = std::move(os::create_memory_file("guard", sizeof(abi::GuardPage)).value());
  const os::Mapping guard =
      os::Mapping::of_file(file.get(), sizeof(abi::GuardPage), os::Protection::ReadWrite).value();
  guard.as<abi::GuardPage>()->magic = abi::guard_page_magic;
  guard.as<abi::GuardPage>()->version = abi::guard_page_version;
  detectors.guards[active.pid()] =
      std::make_shared<guard::GuardView>(std::move(guard::GuardView::of(file.get()).value()));
  detectors.callbacks.on_gpu_opened(active.pid());
  die(active);
  run_until([&] { return agent->status_json().find("\"state\": \"ended\"") != std::string::npos; });
  EXPECT_TRUE(child_lives());
  end_child();
  for (bool is_released = false; !is_released;) {
    loop->run_once(Milliseconds(10));
    clock.advance(Milliseconds(20));
    while (auto received = subscriber.receive()) {
      const auto* event = std::get_if<abi::Event>(&received->message);
      if (event == nullptr) continue;
      EXPECT_NE(event->what, abi::EventKind::NotFenced) << event->text;
      is_released |= event->what == abi::EventKind::Released;
    }
  }
}

TEST_F(AgentFence, NobodysChildIsEndedWhileNobodyWaits) {
  auto [active, page] = forking_alone();
  die(active);
  EXPECT_THAT(text_of("not fenced"), HasSubstr("still holds the GPU descriptors of the dead process"));
  EXPECT_TRUE(child_lives());
  EXPECT_EQ(phase(), pair::Phase::Lost);
  // The tenant is lost until somebody begins anew.
  Peer next = peer();
  next.send(abi::Join{"llm", abi::Role::Active});
  settle();
  EXPECT_EQ(word(page).epoch, 0u);
  run_until([&] { return word(page).epoch == 1; });
  EXPECT_FALSE(child_lives());
}

class AgentFenceRestart : public AgentFence {
 protected:
  ~AgentFenceRestart() override {
    if (stranger != 0) end_stranger();
  }
  /// Somebody else is given what the process has on the GPU.
  void give_to_stranger(pid_t pid) {
    const std::string wanted = kernel.uvm_link_target();
    const os::Fd process = kernel.pidfd_open(pid).value();
    os::Fd space;
    ASSERT_TRUE(os::visit_descriptors(kernel, pid, [&](int number, const std::string& target) {
      if (target == wanted) space = kernel.pidfd_getfd(process, number, target).value();
      return !space;
    }));
    os::SpawnRequest request;
    request.command = {"sleep", "1000"};
    request.inherited = {{space.get(), 3}};
    stranger = kernel.spawn(request).value();
    // Waits until it is that program, which has all that it will have.
    while (os::program_name(kernel.read_file(os::proc_folder(stranger) + "/stat").value()) != "sleep") {
    }
  }
  void end_stranger() {
    ASSERT_TRUE(kernel.send_signal(kernel.pidfd_open(stranger).value(), SIGKILL));
    while (!kernel.try_wait(stranger).value()) {
    }
    stranger = 0;
  }
  std::string stranger_in_words() const { return "process " + std::to_string(stranger) + " (sleep)"; }
  /// Waits until the agent that there is now says who is in the way; it may have said so before anybody
  /// listened.
  void expect_stranger_in_the_way() {
    run_until([&] { return agent->status_json().find(stranger_in_words()) != std::string::npos; });
    EXPECT_THAT(agent->status_json(), HasSubstr("\"state\": \"held elsewhere\""));
  }
  pid_t stranger = 0;

  void restart() {
    AgentOptions options;
    options.socket_path = path;
    agent = start_agent(std::move(options));
    settle();  // the shelves have said what they have
  }
};

TEST_F(AgentFenceRestart, TheChildOfWhoEndedMeanwhileIsEndedFirst) {
  auto [active, standby, page] = forking_pair();
  agent.reset();
  active.end(kernel);
  restart();
  EXPECT_EQ(word(page).epoch, 0u);
  run_until([&] { return word(page).epoch == 1; });
  EXPECT_FALSE(child_lives());
}

// Its kernels go on with what its child has, and that program may run for ever.
TEST_F(AgentFenceRestart, AnActiveThatBecameAnotherProgramMeanwhileIsEndedAndFollowedAfterItsChild) {
  auto [active, standby, page] = forking_pair();
  agent.reset();
  active.become_another_program(kernel);
  restart();
  run_until([&] { return !detectors.expected.empty(); });
  EXPECT_THAT(detectors.expected, testing::ElementsAre(active.pid())) << "it is ended";
  EXPECT_EQ(word(page).epoch, 0u);
  EXPECT_TRUE(child_lives());
  active.end(kernel);
  detectors.callbacks.on_exit(active.pid());
  EXPECT_EQ(word(page).epoch, 0u);
  run_until([&] { return word(page).epoch == 1; });
  EXPECT_FALSE(child_lives());
}

TEST_F(AgentFenceRestart, AStrangerThatWasToldIsInTheWayOfTheNextAgentToo) {
  auto [active, standby, page] = forking_pair();
  give_to_stranger(active.pid());
  end_child();
  die(active);
  EXPECT_THAT(text_of("not fenced"), HasSubstr(stranger_in_words()));
  agent.reset();
  restart();
  EXPECT_EQ(word(page).epoch, 0u);
  EXPECT_EQ(phase(), pair::Phase::Suspecting);
  expect_stranger_in_the_way();
  EXPECT_EQ(word(page).epoch, 0u);
  end_stranger();
  run_until([&] { return word(page).epoch == 1; });
}

// The stranger came to what it has while nobody looked for anybody, and its giver ends while nobody is there.
TEST_F(AgentFenceRestart, AStrangerWhomNoAgentHasSeenIsFoundByTheMark) {
  auto [active, standby, page] = forking_pair();
  give_to_stranger(active.pid());
  end_child();
  agent.reset();
  active.end(kernel);
  restart();
  EXPECT_EQ(word(page).epoch, 0u);
  expect_stranger_in_the_way();
  EXPECT_EQ(word(page).epoch, 0u);
  end_stranger();
  run_until([&] { return word(page).epoch == 1; });
}

TEST_F(AgentFenceRestart, WhoBeginsAnewUnderTheNextAgentWaitsForTheStrangerToo) {
  auto [active, page] = forking_alone();
  give_to_stranger(active.pid());
  end_child();
  die(active);
  EXPECT_THAT(text_of("not fenced"), HasSubstr(stranger_in_words()));
  agent.reset();
  restart();
  Peer next = peer();
  next.send(abi::Join{"llm", abi::Role::Active});
  expect_stranger_in_the_way();
  EXPECT_EQ(phase(), pair::Phase::Lost);
  end_stranger();
  run_until([&] { return phase() == pair::Phase::Serving; });
}

}  // namespace
}  // namespace firebreak::agent
