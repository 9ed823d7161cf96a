// SPDX-License-Identifier: Apache-2.0
#include "agent/domains/mps/domain_keeper.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>

#include "tests/doubles/mps/domain_test_support.h"

namespace firebreak::mps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Ne;

class Keeper : public FakeDaemonTest {
 protected:
  KeeperOptions quick() const {
    KeeperOptions quick;
    quick.domain = options();
    quick.first_backoff = quick.fault_lasts = quick.first_drain_look = Milliseconds(1);
    quick.longest_backoff = quick.longest_drain_look = Milliseconds(10);
    quick.newcomers_prove = Milliseconds(1);
    // Nobody is killed for being slow.
    quick.domain.server_end_timeout = std::chrono::hours(1);
    return quick;
  }
  /// Keeps with another kernel, which knows that server.
  std::unique_ptr<DomainKeeper> keep_with(os::Kernel& kernel, const KeeperOptions& with,
                                          const Stranger& server) {
    auto keeper =
        std::move(DomainKeeper::start(kernel, with, {.on_news = [](const std::string&) {}}).value());
    write("answers/get_server_list", std::to_string(server.pid) + "\n");
    keeper->look_for_servers();
    wait_for_server(*keeper, server.pid);
    return keeper;
  }
  std::unique_ptr<DomainKeeper> keep(const KeeperOptions& with) {
    KeeperCallbacks callbacks;
    callbacks.on_news = [this](const std::string& news) {
      const std::lock_guard lock(mutex_);
      news_ += news + "\n";
      told_.notify_all();
    };
    callbacks.on_clients_lost = [this] { ++clients_lost_; };
    callbacks.on_server = [this](pid_t server) { last_server_ = server; };
    callbacks.on_clients = [this](const ClientList& clients) {
      const std::lock_guard lock(mutex_);
      clients_ = clients;
      told_.notify_all();
    };
    auto keeper = DomainKeeper::start(kernel_, with, std::move(callbacks));
    EXPECT_TRUE(keeper) << to_string(keeper.error());
    return keeper ? std::move(*keeper) : nullptr;
  }
  void wait_for_news(const std::string& words) {
    std::unique_lock lock(mutex_);
    told_.wait(lock, [&] { return news_.find(words) != std::string::npos; });
  }
  void kill(pid_t pid) { ASSERT_TRUE(kernel_.send_signal(kernel_.pidfd_open(pid).value(), SIGKILL)); }
  Stranger server() { return start({options().control_program, "-f"}, {{"FAKE_MPS_MODE", "silent"}}); }
  void wait_for_server(const DomainKeeper& keeper, pid_t pid) {
    while (keeper.report().servers != std::vector<pid_t>{pid}) {
    }
  }

  /// A client that is a process.
  static std::string living() { return std::to_string(getpid()) + "\n"; }
  /// One that has ended: Linux has no such numbers.
  static constexpr const char* dead = "5000001\n";
  /// MPS names that server and its clients.
  void list(const Stranger& server, const std::string& state, const std::string& clients) {
    write("answers/get_server_status_" + std::to_string(server.pid), state);
    write("answers/get_client_list_" + std::to_string(server.pid), clients);
    write("answers/get_server_list", std::to_string(server.pid) + "\n");
  }
  /// A fault has hit its clients, which are still there. The keeper knows it.
  Stranger server_in_fault(DomainKeeper& keeper) {
    Stranger server = this->server();
    list(server, "FAULT\n", living());
    keeper.look_for_servers();
    wait_for_server(keeper, server.pid);
    return server;
  }
  /// Its clients have been asked for twice, and it has not been ended; without clients it is replaced.
  void expect_to_drain_until_it_has_none(const DomainKeeper& keeper, const Stranger& server) {
    const std::string question = "get_client_list " + std::to_string(server.pid);
    while (content("commands").find(question) == content("commands").rfind(question)) {
    }
    EXPECT_EQ(keeper.report().state, DomainState::Draining);
    EXPECT_THAT(content("commands"), testing::Not(HasSubstr("shutdown_server")));
    list(server, "ACTIVE\n", "");
    wait_for_news("serves again, with daemon");
    end_of(server);
  }
  void wait_for_clients(const std::vector<pid_t>& pids) {
    std::unique_lock lock(mutex_);
    told_.wait(lock, [&] { return clients_.pids == pids; });
  }

  std::mutex mutex_;  ///< guards news_ and clients_
  std::condition_variable told_;
  std::atomic<int> clients_lost_ = 0;
  std::atomic<pid_t> last_server_ = 0;
  std::string news_;
  ClientList clients_;
};

TEST_F(Keeper, ADomainThatCannotStartIsTheFailureOfItsKeeper) {
  KeeperOptions with = quick();
  with.domain = options("dies");
  const auto keeper = DomainKeeper::start(kernel_, with, {.on_news = [](const std::string&) {}});
  ASSERT_FALSE(keeper);
  EXPECT_THAT(keeper.error().message, HasSubstr("the GPU is not there"));
}

TEST_F(Keeper, EndsTheDaemonAtItsOwnEnd) {
  auto keeper = keep(quick());
  ASSERT_TRUE(keeper);
  const pid_t daemon = keeper->report().daemon_pid;
  EXPECT_TRUE(exists(daemon));
  keeper.reset();
  EXPECT_FALSE(exists(daemon));
}

TEST_F(Keeper, StartsADaemonThatDiedAgain) {
  const auto keeper = keep(quick());
  ASSERT_TRUE(keeper);
  const pid_t first = keeper->report().daemon_pid;
  kill(first);
  wait_for_news("serves again");
  const DomainReport report = keeper->report();
  EXPECT_EQ(report.state, DomainState::Serving);
  EXPECT_THAT(report.daemon_pid, Ne(first));
  EXPECT_EQ(report.daemon_restarts, 1U);
  EXPECT_EQ(clients_lost_, 1);
  EXPECT_TRUE(keeper->domain()->server_pids());
  EXPECT_THAT(news_, HasSubstr("its MPS daemon " + std::to_string(first) + " has ended"));
}

TEST_F(Keeper, TriesUntilItCanBeStartedAndTakesNobodyMeanwhile) {
  const auto keeper = keep(quick());
  ASSERT_TRUE(keeper);
  write("dies", "");
  kill(keeper->report().daemon_pid);
  wait_for_news("it cannot be started: MPS domain a ended at once: the GPU is not there");
  wait_for_news("again in 4 ms");
  EXPECT_FALSE(keeper->takes_clients());
  ASSERT_EQ(std::remove(file("dies").c_str()), 0);
  wait_for_news("serves again");
  EXPECT_TRUE(keeper->takes_clients());
}

TEST_F(Keeper, AServerThatEndsIsFollowedByOneOfTheSameUser) {
  const auto keeper = keep(quick());
  ASSERT_TRUE(keeper);
  const Stranger server = this->server();
  write("answers/get_server_list", std::to_string(server.pid) + "\n");
  keeper->look_for_servers();
  wait_for_server(*keeper, server.pid);
  write("answers/get_server_list", "");
  kill(server.pid);
  wait_for_news("serves again, with a new server");
  end_of(server);
  EXPECT_THAT(keeper->report().servers, IsEmpty());
  EXPECT_EQ(keeper->report().server_restarts, 1U);
  EXPECT_EQ(clients_lost_, 1);
  EXPECT_THAT(content("commands"), HasSubstr("start_server -uid " + std::to_string(getuid()) + "\n"));
}

TEST_F(Keeper, AServerIsOneByMpsListAloneAndNotByItsEnvironment) {
  const auto keeper = keep(quick());
  ASSERT_TRUE(keeper);
  const Stranger client = start({options().control_program, "-f"},
                                {{"FAKE_MPS_MODE", "silent"}, {"CUDA_MPS_PIPE_DIRECTORY", file("pipe")}});
  const Stranger server = this->server();
  EXPECT_FALSE(keeper->is_server(server.pid)) << "MPS has not named it yet";
  write("answers/get_server_list", std::to_string(server.pid) + "\n");
  keeper->look_for_servers();
  wait_for_server(*keeper, server.pid);
  EXPECT_TRUE(keeper->is_server(server.pid));
  EXPECT_FALSE(keeper->is_server(client.pid));
  for (const Stranger* each : {&server, &client}) {
    kill(each->pid);
    end_of(*each);
  }
}

TEST_F(Keeper, AServerThatHasJustEndedIsOneUntilTheNextIsThere) {
  KeeperOptions with = quick();
  with.fault_lasts = std::chrono::hours(1);
  const auto keeper = keep(with);
  ASSERT_TRUE(keeper);
  const Stranger first = this->server(), second = this->server();
  write("answers/get_server_list", std::to_string(first.pid) + "\n");
  keeper->look_for_servers();
  wait_for_server(*keeper, first.pid);
  write("answers/get_server_list", "");
  kill(first.pid);
  wait_for_news("serves again, with a new server");
  end_of(first);
  EXPECT_TRUE(keeper->is_server(first.pid)) << "the fault that ended it may name it";
  write("answers/get_server_list", std::to_string(second.pid) + "\n");
  keeper->look_for_servers();
  wait_for_server(*keeper, second.pid);
  EXPECT_FALSE(keeper->is_server(first.pid));
  EXPECT_TRUE(keeper->is_server(second.pid));
  kill(second.pid);
  end_of(second);
}

TEST_F(Keeper, AServerThatEndedLongAgoIsForgotten) {
  const auto keeper = keep(quick());
  ASSERT_TRUE(keeper);
  const Stranger server = this->server();
  write("answers/get_server_list", std::to_string(server.pid) + "\n");
  keeper->look_for_servers();
  wait_for_server(*keeper, server.pid);
  write("answers/get_server_list", "");
  kill(server.pid);
  wait_for_news("serves again, with a new server");
  end_of(server);
  while (keeper->is_server(server.pid)) {
  }
}

/// Shows another start than before of one process: its number is another's now.
struct NumberTakenKernel : os::RealKernel {
  Result<std::string> read_file(const std::string& path) override {
    if (path.ends_with("/stat")) ++looks;
    auto content = RealKernel::read_file(path);
    if (path != "/proc/" + std::to_string(taken.load()) + "/stat") return content;
    return "1 (other) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 77";
  }
  std::atomic<pid_t> taken = 0;
  std::atomic<int> looks = 0;
};

TEST_F(Keeper, WhoHasTheNumberOfAServerThatWasIsNone) {
  NumberTakenKernel kernel;
  KeeperOptions options = quick();
  options.fault_lasts = std::chrono::hours(1);
  const Stranger server = this->server();
  const auto keeper = keep_with(kernel, options, server);
  kill(server.pid);
  end_of(server);
  EXPECT_TRUE(keeper->is_server(server.pid)) << "nobody has its number";
  kernel.taken = server.pid;
  EXPECT_FALSE(keeper->is_server(server.pid));
}

TEST_F(Keeper, OfAServerThatLivesNothingIsLookedAt) {
  NumberTakenKernel kernel;
  const Stranger server = this->server();
  const auto keeper = keep_with(kernel, quick(), server);
  const int before = kernel.looks;
  EXPECT_TRUE(keeper->is_server(server.pid));
  EXPECT_FALSE(keeper->is_server(::getpid())) << "which MPS has not named";
  EXPECT_EQ(kernel.looks, before);
}

TEST_F(Keeper, NamesAllClientsAsMpsDoesWhoeverPlacedThem) {
  const auto keeper = keep(quick());
  ASSERT_TRUE(keeper);
  write("answers/get_server_list", "5000000\n");
  const Monotonic before = SystemClock().now();
  keeper->look_for_clients();
  wait_for_clients({601, 602});
  EXPECT_GE(clients_.asked, before);
  write("answers/get_client_list_5000000", "601\n603\n");
  keeper->look_for_clients();
  wait_for_clients({601, 603});
}

TEST_F(Keeper, AsksForClientsAlsoWhereNobodyTellsItTo) {
  KeeperOptions with = quick();
  with.between_client_looks = Milliseconds(1);
  const auto keeper = keep(with);
  ASSERT_TRUE(keeper);
  write("answers/get_server_list", "5000000\n");
  wait_for_clients({601, 602});
}

TEST_F(Keeper, AListThatLacksAServersAnswerIsNone) {
  const auto keeper = keep(quick());
  ASSERT_TRUE(keeper);
  write("answers/get_client_list_5000000", "Error: it does not answer\n");
  write("answers/get_server_list", "5000000\n");
  keeper->look_for_clients();
  while (content("commands").find("get_client_list 5000000") == std::string::npos) {
  }
  write("answers/get_client_list_5000000", "604\n");
  keeper->look_for_clients();
  wait_for_clients({604});
}

TEST_F(Keeper, ADaemonThatDoesNotAnswerTakesNobodyUntilItDoes) {
  KeeperOptions with = quick();
  with.domain.command_timeout = Milliseconds(200);
  with.between_client_looks = with.second_client_look = Milliseconds(10);
  const auto keeper = keep(with);
  ASSERT_TRUE(keeper);
  const os::Fd daemon = kernel_.pidfd_open(keeper->report().daemon_pid).value();
  ASSERT_TRUE(kernel_.send_signal(daemon, SIGSTOP));
  wait_for_news("does not answer");
  EXPECT_FALSE(keeper->takes_clients());
  EXPECT_STREQ(describe_state(keeper->report()), "silent");
  EXPECT_EQ(keeper->report().state, DomainState::Serving) << "whoever is there goes on";
  ASSERT_TRUE(kernel_.send_signal(daemon, SIGCONT));
  wait_for_news("answers again");
  EXPECT_TRUE(keeper->takes_clients());
  EXPECT_EQ(clients_lost_, 0);
}

TEST_F(Keeper, LooksUntilTheFirstClientHasGotItsServer) {
  const auto keeper = keep(quick());
  ASSERT_TRUE(keeper);
  keeper->look_for_servers();
  while (content("commands").find("get_server_list") == content("commands").rfind("get_server_list")) {
  }
  const Stranger server = this->server();
  write("answers/get_server_list", std::to_string(server.pid) + "\n");
  wait_for_server(*keeper, server.pid);
  while (last_server_ != server.pid) {
  }
  kill(server.pid);
  end_of(server);
}

TEST_F(Keeper, AFaultThatNobodySawIsFoundOut) {
  const auto keeper = keep(quick());
  ASSERT_TRUE(keeper);
  write("answers/get_client_list_5000000", living());
  write("answers/get_server_list", "5000000\n");
  write("answers/get_server_status_5000000", "INITIALIZING\n");
  keeper->look_for_faults();
  while (content("commands").find("get_server_status 5000000") == std::string::npos) {
  }
  EXPECT_TRUE(keeper->takes_clients());
  write("answers/get_server_status_5000000", "FAULT\n");
  keeper->look_for_faults();
  wait_for_news("takes nobody until it has drained");
  EXPECT_EQ(clients_lost_, 1);
  write("answers/get_server_status_5000000", "ACTIVE\n");
  wait_for_news("has drained, and serves again");
  EXPECT_EQ(clients_lost_, 1);
}

TEST_F(Keeper, AFaultThatMpsHasNotHeardOfYetIsAskedForAgain) {
  KeeperOptions with = quick();
  with.fault_lasts = std::chrono::hours(1);
  with.second_fault_look = Milliseconds(1);
  write("answers/get_client_list_5000000", living());
  write("answers/get_server_list", "5000000\n");
  write("answers/get_server_status_5000000", "ACTIVE\n");
  const auto keeper = keep(with);
  ASSERT_TRUE(keeper);
  keeper->look_for_faults();
  while (content("commands").find("get_server_status 5000000") == std::string::npos) {
  }
  write("answers/get_server_status_5000000", "FAULT\n");
  wait_for_news("takes nobody until it has drained");
  EXPECT_EQ(clients_lost_, 1);
}

TEST_F(Keeper, ADomainThatIsTakenOverInFaultTakesNobody) {
  write("answers/get_client_list_5000000", living());
  write("answers/get_server_list", "5000000\n");
  write("answers/get_server_status_5000000", "FAULT\n");
  KeeperOptions with = quick();
  with.domain.takes_over = true;
  const Stranger daemon = left_daemon();
  const auto keeper = keep(with);
  ASSERT_TRUE(keeper);
  EXPECT_EQ(keeper->report().daemon_pid, daemon.pid);
  EXPECT_FALSE(keeper->takes_clients());
  EXPECT_EQ(clients_lost_, 1);
  write("answers/get_server_status_5000000", "ACTIVE\n");
  wait_for_news("has drained, and serves again");
}

TEST_F(Keeper, AfterAFaultItTakesNobodyUntilTheServerIsInOrder) {
  const auto keeper = keep(quick());
  ASSERT_TRUE(keeper);
  write("answers/get_server_status_5000000", "FAULT\n");
  write("answers/get_client_list_5000000", living());
  write("answers/get_server_list", "5000000\n");
  keeper->note_fault();
  EXPECT_FALSE(keeper->takes_clients());
  wait_for_news("takes nobody until it has drained");
  // Its client is asked for again and again.
  while (content("commands").find("get_client_list 5000000") ==
         content("commands").rfind("get_client_list 5000000")) {
  }
  EXPECT_EQ(keeper->report().state, DomainState::Draining);
  write("answers/get_server_status_5000000", "ACTIVE\n");
  wait_for_news("has drained, and serves again");
  EXPECT_TRUE(keeper->takes_clients());
}

// Its last words come after the fall.
TEST_F(Keeper, WhatHasFallenIsLookedAtAtOnceWhateverIsToldOfItsFaultStill) {
  KeeperOptions with = quick();
  with.fault_lasts = std::chrono::hours(1);
  with.fall_lasts = Milliseconds(1);
  const auto keeper = keep(with);
  ASSERT_TRUE(keeper);
  keeper->note_fall();  // of a domain in order it says nothing
  EXPECT_TRUE(keeper->takes_clients());
  write("answers/get_server_status_5000000", "FAULT\n");
  write("answers/get_client_list_5000000", living());
  write("answers/get_server_list", "5000000\n");
  keeper->note_fault();
  wait_for_news("takes nobody until it has drained");
  EXPECT_THAT(content("commands"), Not(HasSubstr("get_client_list 5000000")));
  keeper->note_fall();
  keeper->note_fault();
  while (content("commands").find("get_client_list 5000000") == std::string::npos) {
  }
  EXPECT_EQ(keeper->report().state, DomainState::Draining) << "its client is there still";
  write("answers/get_client_list_5000000", "");
  wait_for_news("has drained; its MPS server 5000000 is replaced");
  wait_for_news("serves again, with daemon");
}

TEST_F(Keeper, AServerWhoseClientsAreGoneHasDrained) {
  const auto keeper = keep(quick());
  ASSERT_TRUE(keeper);
  write("answers/get_server_status_5000000", "FAULT\n");
  write("answers/get_client_list_5000000", "");
  write("answers/get_server_list", "5000000\n");
  keeper->note_fault();
  wait_for_news("has drained; its MPS server 5000000 is replaced");
  wait_for_news("serves again, with daemon");
}

// It calls itself ACTIVE, and would fail its next client (docs/how/domains.md).
TEST_F(Keeper, AfterAFaultAServerWithoutClientsIsReplacedWhateverItSays) {
  const auto keeper = keep(quick());
  ASSERT_TRUE(keeper);
  const Stranger server = this->server();
  list(server, "ACTIVE\n", "");
  keeper->look_for_servers();
  wait_for_server(*keeper, server.pid);
  const pid_t daemon = keeper->report().daemon_pid;
  keeper->note_fault();
  EXPECT_FALSE(keeper->takes_clients());
  wait_for_news("serves again, with daemon");
  EXPECT_EQ(end_of(server).signal, SIGTERM) << "by the fake's way to shut it down";
  EXPECT_TRUE(keeper->takes_clients());
  EXPECT_EQ(keeper->report().server_restarts, 1U);
  EXPECT_THAT(keeper->report().servers, IsEmpty());
  EXPECT_EQ(clients_lost_, 0) << "it had none";
  EXPECT_FALSE(exists(daemon)) << "whoever was its client, and comes again, would end it";
  EXPECT_THAT(keeper->report().daemon_pid, Ne(daemon));
  EXPECT_EQ(keeper->report().daemon_restarts, 0U) << "it has not failed";
  EXPECT_TRUE(keeper->domain()->server_pids());
}

// A daemon that fails is waited for, longer each time. One that is replaced is there at once, however often.
TEST_F(Keeper, ADaemonThatIsReplacedIsThereAtOnceEachTime) {
  KeeperOptions with = quick();
  with.longest_backoff = with.first_backoff = std::chrono::hours(1);
  const auto keeper = keep(with);
  ASSERT_TRUE(keeper);
  for (int i = 0; i < 5; ++i) {
    const Stranger server = this->server();
    list(server, "ACTIVE\n", "");
    keeper->note_fault();
    wait_for_news("serves again, with daemon");
    end_of(server);
    EXPECT_TRUE(keeper->takes_clients()) << i;
    const std::lock_guard lock(mutex_);
    news_.clear();
  }
}

// Their clients never got their error on an H200, and stood still for as long as somebody looked.
TEST_F(Keeper, ServersOfADaemonThatDoesNotAnswerAfterAFaultAreKilled) {
  KeeperOptions with = quick();
  with.silence_is_waited_for = Milliseconds(50);
  with.domain.command_timeout = Milliseconds(200);
  with.between_client_looks = with.second_client_look = Milliseconds(10);
  const auto keeper = keep(with);
  ASSERT_TRUE(keeper);
  const Stranger server = server_in_fault(*keeper);
  const pid_t daemon = keeper->report().daemon_pid;
  ::kill(daemon, SIGSTOP);
  keeper->note_fault();
  wait_for_news("is killed: after a fault its daemon has not answered for");
  EXPECT_EQ(end_of(server).signal, SIGKILL);
  ::kill(daemon, SIGCONT);
}

TEST_F(Keeper, ServersOfADaemonThatAnswersAreNot) {
  KeeperOptions with = quick();
  with.silence_is_waited_for = Milliseconds(0);
  const auto keeper = keep(with);
  ASSERT_TRUE(keeper);
  const Stranger server = server_in_fault(*keeper);
  keeper->note_fault();
  expect_to_drain_until_it_has_none(*keeper, server);
  const std::lock_guard lock(mutex_);
  EXPECT_THAT(news_, testing::Not(HasSubstr("is killed")));
}

// Idle clients do nothing that could show them the fault, and would stay for good.
TEST_F(Keeper, IdleClientsOfAServerInFaultAreNotWaitedFor) {
  KeeperOptions with = quick();
  with.idle_clients_asked_every = Milliseconds(5);
  const auto keeper = keep(with);
  ASSERT_TRUE(keeper);
  const Stranger server = this->server();
  list(server, "ACTIVE\n", living());
  wait_for_server(*keeper, server.pid);
  const pid_t daemon = keeper->report().daemon_pid;
  EXPECT_TRUE(keeper->takes_clients());
  write("answers/get_server_status_" + std::to_string(server.pid), "FAULT\n");
  wait_for_news("its clients do no work, and are not waited for");
  EXPECT_EQ(end_of(server).signal, SIGKILL);
  write("answers/get_server_list", "");
  wait_for_news("serves again, with daemon");
  EXPECT_THAT(keeper->report().daemon_pid, Ne(daemon));
  EXPECT_GE(keeper->report().server_restarts, 1U);
}

// Stock MPS ends it, or somebody does, while the keeper waits for its clients.
TEST_F(Keeper, AServerThatEndsByItselfAfterAFaultTakesItsDaemonAlong) {
  const auto keeper = keep(quick());
  ASSERT_TRUE(keeper);
  const Stranger server = server_in_fault(*keeper);
  const pid_t daemon = keeper->report().daemon_pid;
  keeper->note_fault();
  wait_for_news("takes nobody until it has drained");
  write("answers/get_server_list", "");
  kill(server.pid);
  wait_for_news("serves again, with daemon");
  end_of(server);
  EXPECT_FALSE(exists(daemon)) << "whoever was its client, and comes again, would end it";
  EXPECT_THAT(content("commands"), testing::Not(HasSubstr("start_server")));
  EXPECT_TRUE(keeper->takes_clients());
  EXPECT_EQ(keeper->report().daemon_restarts, 0U) << "it has not failed";
}

TEST_F(Keeper, AfterAFaultAServerIsNotEndedUnderANewcomer) {
  KeeperOptions with = quick();
  with.newcomers_prove = std::chrono::hours(1);
  const auto keeper = keep(with);
  ASSERT_TRUE(keeper);
  const Stranger server = this->server();
  list(server, "ACTIVE\n", living());
  keeper->note_fault();
  expect_to_drain_until_it_has_none(*keeper, server);  // the newcomer may have no context yet
}

class KeeperOfTheDead : public Keeper, public testing::WithParamInterface<const char*> {};

// MPS named one for minutes on an H100, and nobody was placed there again.
TEST_P(KeeperOfTheDead, AServerThatNamesNobodyButTheDeadIsReplaced) {
  KeeperOptions with = quick();
  with.domain = options("ignores-shutdown");
  with.dead_are_waited_for = with.domain.server_end_timeout = Milliseconds(1);
  const auto keeper = keep(with);
  ASSERT_TRUE(keeper);
  const Stranger server = this->server();
  list(server, GetParam(), dead);
  keeper->note_fault();
  wait_for_news("names nobody but the dead as its clients");
  wait_for_news("serves again, with daemon");
  end_of(server);
  EXPECT_TRUE(keeper->takes_clients());
}

TEST_P(KeeperOfTheDead, ButNotAtOnce) {
  KeeperOptions with = quick();
  with.dead_are_waited_for = std::chrono::hours(1);
  const auto keeper = keep(with);
  ASSERT_TRUE(keeper);
  const Stranger server = this->server();
  list(server, GetParam(), dead);
  keeper->note_fault();
  expect_to_drain_until_it_has_none(*keeper, server);
}

TEST_P(KeeperOfTheDead, NorUnderALivingOne) {
  KeeperOptions with = quick();
  with.dead_are_waited_for = Milliseconds(1);
  with.newcomers_prove = std::chrono::hours(1);
  const auto keeper = keep(with);
  ASSERT_TRUE(keeper);
  const Stranger server = this->server();
  list(server, GetParam(), dead + living());
  keeper->note_fault();
  expect_to_drain_until_it_has_none(*keeper, server);
}

INSTANTIATE_TEST_SUITE_P(InEachState, KeeperOfTheDead, testing::Values("ACTIVE\n", "FAULT\n"),
                         [](const auto& state) { return std::string(state.param, 5); });

TEST_F(Keeper, AServerThatServesANewcomerIsInOrderAndStays) {
  const auto keeper = keep(quick());
  ASSERT_TRUE(keeper);
  const Stranger server = this->server();
  list(server, "ACTIVE\n", living());
  keeper->note_fault();
  wait_for_news("has drained, and serves again");
  EXPECT_THAT(content("commands"), testing::Not(HasSubstr("shutdown_server")));
  kill(server.pid);
  end_of(server);
}

TEST_F(Keeper, AServerWithoutClientsIsReplacedWhereAFaultMayHaveBeenMissed) {
  const auto keeper = keep(quick());
  ASSERT_TRUE(keeper);
  const Stranger busy = this->server();
  list(busy, "ACTIVE\n", living());
  keeper->look_for_faults();
  const std::string question = "get_client_list " + std::to_string(busy.pid);
  while (content("commands").find(question) == std::string::npos) {
  }
  list(busy, "ACTIVE\n", "");
  keeper->look_for_faults();
  wait_for_news("was not watched for a while; its MPS server " + std::to_string(busy.pid) + " is replaced");
  wait_for_news("serves again, with a new server");
  EXPECT_EQ(end_of(busy).signal, SIGTERM);
  EXPECT_EQ(clients_lost_, 0);
}

TEST_F(Keeper, AServerThatDoesNotGoLeavesTheDomainClosedAndIsSaid) {
  KeeperOptions with = quick();
  with.domain = options("ignores-shutdown");
  with.domain.server_end_timeout = Milliseconds(1);
  with.newcomers_prove = with.between_client_looks = std::chrono::hours(1);
  const auto keeper = keep(with);
  ASSERT_TRUE(keeper);
  const Stranger server = this->server();
  // A client comes after the question whether it has any.
  write("answers/get_client_list_" + std::to_string(server.pid) + ".later", living());
  list(server, "ACTIVE\n", "");
  keeper->note_fault();
  wait_for_news("has drained, but its MPS server " + std::to_string(server.pid) + " does not go");
  EXPECT_FALSE(keeper->takes_clients());
  kill(server.pid);
  end_of(server);
}

TEST_F(Keeper, DaemonAndClientsHaveTheGpuByItsUuid) {
  KeeperOptions with = quick();
  with.domain.gpu = "GPU-1234";
  const auto keeper = keep(with);
  ASSERT_TRUE(keeper);
  EXPECT_EQ(content("gpu"), "GPU-1234\n");
  EXPECT_THAT(keeper->client_environment(),
              testing::Contains(std::pair<std::string, std::string>("CUDA_VISIBLE_DEVICES", "GPU-1234")));
  EXPECT_EQ(keeper->report().gpu, "GPU-1234");
}

TEST_F(Keeper, BoundsTheLog) {
  KeeperOptions with = quick();
  with.between_log_looks = Milliseconds(1);
  with.domain.log = {100, 1};
  const auto keeper = keep(with);
  ASSERT_TRUE(keeper);
  std::ofstream writer(file("log/server.log"), std::ios::app);
  for (int line = 0; line < 100; ++line) writer << "a line of a server\n";
  writer.flush();
  while (!std::ifstream(file("log/server.log.1"))) {
  }
}

/// Whoever could not go on as an agent leaves them to the next one.
TEST_F(Keeper, ADaemonOfAnotherProcessIsLeftAloneUnlessItIsToEndForGood) {
  const Stranger daemon = left_daemon();
  KeeperOptions with = quick();
  with.domain.takes_over = with.domain.outlives_us = true;
  auto keeper = keep(with);
  ASSERT_TRUE(keeper);
  EXPECT_EQ(keeper->report().daemon_pid, daemon.pid);
  keeper.reset();
  EXPECT_FALSE(kernel_.try_wait(daemon.pid).value());
  keeper = keep(with);
  ASSERT_TRUE(keeper);
  EXPECT_EQ(keeper->report().daemon_pid, daemon.pid);
  keeper->end_for_good();
  keeper.reset();
  EXPECT_TRUE(end_of(daemon).clean());
}

TEST_F(Keeper, ADaemonOfOursEndsWithIt) {
  KeeperOptions with = quick();
  with.domain.takes_over = with.domain.outlives_us = true;
  auto keeper = keep(with);
  ASSERT_TRUE(keeper);
  const pid_t daemon = keeper->report().daemon_pid;
  keeper.reset();
  EXPECT_FALSE(exists(daemon));
}

/// A service manager may have started it.
TEST_F(Keeper, ADaemonThatSomebodyElseHasStartedIsItsOwn) {
  KeeperOptions with = quick();
  with.domain.outlives_us = true;
  std::vector<pid_t> moved;
  DaemonStart asked;
  std::optional<Stranger> started;
  with.domain.on_daemon = [&moved](pid_t daemon) { moved.push_back(daemon); };
  with.domain.start_apart = [&](const DaemonStart& start) -> Result<pid_t> {
    asked = start;
    started = this->start(start.command, start.environment);
    return started->pid;
  };
  auto keeper = keep(with);
  ASSERT_TRUE(keeper);
  EXPECT_EQ(keeper->report().daemon_pid, started->pid);
  EXPECT_THAT(asked.command, ElementsAre(options().control_program, "-f"));
  EXPECT_THAT(asked.output_path, HasSubstr("/log/server.log"));
  EXPECT_THAT(moved, IsEmpty()) << "it is where it is to be";
  EXPECT_FALSE(keeper->domain()->is_taken_over());
  keeper.reset();
  EXPECT_TRUE(end_of(*started).clean()) << "nobody has used it";
}

TEST_F(Keeper, WhereNobodyElseStartsItADaemonIsAChild) {
  KeeperOptions with = quick();
  std::vector<pid_t> moved;
  with.domain.on_daemon = [&moved](pid_t daemon) { moved.push_back(daemon); };
  with.domain.start_apart = [](const DaemonStart&) -> Result<pid_t> {
    return fail(ErrorCode::Unavailable, "the manager does not answer");
  };
  const auto keeper = keep(with);
  ASSERT_TRUE(keeper);
  EXPECT_THAT(moved, ElementsAre(keeper->report().daemon_pid));
}

TEST_F(Keeper, ADaemonIsToldOfBeforeItIsServing) {
  KeeperOptions with = quick();
  std::vector<pid_t> told;
  with.domain.on_daemon = [&told](pid_t daemon) { told.push_back(daemon); };
  const auto keeper = keep(with);
  ASSERT_TRUE(keeper);
  EXPECT_THAT(told, ElementsAre(keeper->report().daemon_pid));
}

}  // namespace
}  // namespace firebreak::mps
