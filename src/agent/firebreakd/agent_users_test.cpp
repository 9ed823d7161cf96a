// SPDX-License-Identifier: Apache-2.0
/// Tenants of several users: one of them tries everything against another's (docs/how/security.md).
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ground/base/overloaded.h"
#include "ground/os/processes.h"
#include "tests/doubles/agent/users_test_support.h"

namespace firebreak::agent {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST_F(Users, NothingThatOneAsksChangesAnothersTenant) {
  const std::string before = victims();
  const pid_t active = victim->active.pid();
  const std::vector<abi::Message> requests = {
      abi::Join{"llm", abi::Role::Active, "", "a"},
      abi::Join{"llm", abi::Role::Standby, "", "a"},
      abi::Join{"placed", abi::Role::Active, "guessed", "a"},
      abi::Join{"placed", abi::Role::Active, "", "a"},
      abi::Rejoin{"llm", "", true},
      abi::StandDown{},
      abi::StandDown{1},
      abi::Publish{"weights", 0x500000000000, 4096},
      abi::GiveAllocation{"weights"},
      abi::Share{},
      abi::Share{true},
      abi::GiveShared{"llm", "weights"},
      abi::Listen{},
      abi::GiveListener{},
      abi::NextConnection{},
      abi::ReleaseConnection{1},
      abi::Ready{},
      abi::Resumed{7},
      abi::Finish{},
      abi::Place{"llm", abi::Role::Active},
      abi::Place{"llm", abi::Role::Standby},
      abi::Place{"placed", abi::Role::Active},
      abi::Adopt{"llm", abi::Role::Active, active},
      abi::Adopt{"mine", abi::Role::Active, active},
      abi::Adopt{"mine", abi::Role::Active, 1},
      abi::EndProcess{"llm", active},
      abi::EndProcess{"mine", active},
      abi::EndTenant{"llm"},
      abi::Inject{"llm", "trap"},
      abi::HandOver{"llm"},
      abi::Rest{"llm", abi::RestLevel::WithoutMemory},
      abi::Rest{"llm", abi::RestLevel::Awake},
      abi::Shutdown{true},
      abi::GpuRecovered{"0"},
      // Messages that only the agent sends.
      abi::Joined{},
      abi::Placed{},
      abi::Done{},
      abi::Event{0, abi::EventKind::Fault, "llm", "a", active, "Xid", 0, 0, "a lie"},
  };
  for (const abi::Message& request : requests) {
    Peer attacker = user_peer(mallory);
    const std::string refused = refusal(attacker, request);
    EXPECT_NE(refused, "(not refused)") << abi::encode(request);
    EXPECT_EQ(victims(), before) << abi::encode(request);
  }
  // The attacker sends each once more, on one connection that is a tenant's of its own.
  Peer attacker = user_peer(mallory);
  join(attacker, "mine", abi::Role::Active);
  for (const abi::Message& request : requests) {
    if (std::holds_alternative<abi::Finish>(request)) continue;  // its own
    if (!attacker.try_to_send(request)) break;
    settle();
    while (attacker.receive()) {
    }
    EXPECT_EQ(victims(), before) << abi::encode(request);
  }
  EXPECT_THAT(detectors.expected, IsEmpty()) << "nobody was to end";
}

TEST_F(Users, NobodySeesAnothersTenants) {
  Peer attacker = user_peer(mallory), spy = user_peer(mallory), operators = peer();
  join(attacker, "mine", abi::Role::Active);
  const std::string seen = std::get<abi::StatusDocument>(ask(spy, abi::StatusRequest{})).json;
  EXPECT_THAT(seen, HasSubstr("mine"));
  EXPECT_THAT(seen, Not(HasSubstr("llm")));
  EXPECT_THAT(seen, Not(HasSubstr(std::to_string(victim->active.pid()))));
  EXPECT_EQ(tenants_of(operators).size(), 2u);
  EXPECT_EQ(tenants_of(operators)[1]["owner"], mallory);

  ask(spy, abi::Subscribe{});
  ask(operators, abi::Subscribe{});
  victim->standby.hang_up();
  attacker.hang_up();
  settle();
  std::string told, told_operators;
  while (auto received = spy.receive()) told += std::get<abi::Event>(received->message).tenant + " ";
  while (auto received = operators.receive()) {
    if (const auto* event = std::get_if<abi::Event>(&received->message))
      told_operators += event->tenant + " ";
  }
  EXPECT_THAT(told, Not(HasSubstr("llm")));
  EXPECT_THAT(told_operators, HasSubstr("llm"));
}

TEST_F(Users, AnObserverSeesAllTenantsAndDoesNothing) {
  const std::string before = victims();
  Peer observer = user_peer(mallory, "/status"), tenants = user_peer(mallory);
  const auto status =
      nlohmann::json::parse(std::get<abi::StatusDocument>(ask(observer, abi::StatusRequest{})).json);
  EXPECT_EQ(status["tenants"][0]["name"], "llm");
  EXPECT_EQ(status["counts"]["agent_starts"], 2);
  EXPECT_THAT(std::get<abi::StatusDocument>(ask(tenants, abi::StatusRequest{})).json,
              Not(HasSubstr("\"counts\"")));
  for (const abi::Message& request : std::initializer_list<abi::Message>{
           abi::Join{"mine", abi::Role::Active}, abi::Place{"mine", abi::Role::Active}, abi::Subscribe{},
           abi::EndTenant{"llm"}, abi::HandOver{"llm"}, abi::Shutdown{true}, abi::GpuRecovered{"0"}})
    EXPECT_THAT(refusal(observer, request), HasSubstr("for the status alone")) << abi::encode(request);
  EXPECT_EQ(victims(), before);
}

// The number of a process that has ended is another's by now: who started the first speaks for it no more.
TEST_F(Users, WhoStartedAProcessSpeaksForNoOtherOfThatNumber) {
  Peer command = user_peer(mallory);
  ask(command, abi::Place{"mine", abi::Role::Active});
  const pid_t child = child_of(command);
  ask(command, abi::Adopt{"mine", abi::Role::Active, child});
  detectors.callbacks.on_exit(child);
  settle();
  command.send(abi::Output{child, "its last line"});
  settle();
  EXPECT_EQ(detectors.output[child], "its last line");
  const std::string stat = os::proc_folder(child) + "/stat";
  const std::string now = kernel.read_file(stat).value();
  const std::string since(os::start_time(now));
  kernel.files[stat] = std::string(now).replace(now.rfind(since), since.size(), since + "1");
  command.send(abi::Output{child, ", of another"});
  settle();
  EXPECT_EQ(detectors.output[child], "its last line");
}

TEST_F(Users, OneRunsTenantsOfItsOwn) {
  Peer command = user_peer(mallory);
  const auto placed = std::get<abi::Placed>(ask(command, abi::Place{"mine", abi::Role::Active}));
  const std::pair<std::string, std::string> where{"FIREBREAK_SOCKET", directory.path() + "/tenants"};
  EXPECT_THAT(placed.environment, testing::Contains(where));
  const pid_t child = child_of(command);
  EXPECT_TRUE(std::holds_alternative<abi::Done>(ask(command, abi::Adopt{"mine", abi::Role::Active, child})));
  EXPECT_EQ(tenants_of(command)[0]["active"]["pid"], child);
  EXPECT_EQ(refusal(command, abi::Place{"other", abi::Role::Active}),
            "this connection is tenant 'mine' alone");
  command.send(abi::Output{child, "fault"});
  settle();
  EXPECT_EQ(detectors.output[child], "fault");
  Peer other = user_peer(mallory);
  EXPECT_EQ(refusal(other, abi::HandOver{"mine"}), "no tenant 'mine' has an active process");
}

TEST_F(Users, OnlyWhoWasToldToStartAProcessBringsIt) {
  Peer told = user_peer(mallory), other = user_peer(mallory);
  ask(told, abi::Place{"mine", abi::Role::Active});
  EXPECT_EQ(refusal(other, abi::Adopt{"mine", abi::Role::Active, child_of(other)}),
            "nobody told this connection to start that process");
  EXPECT_THAT(refusal(told, abi::Adopt{"mine", abi::Role::Active, child_of(other)}),
              HasSubstr("is no child"));
  EXPECT_THAT(refusal(told, abi::Adopt{"mine", abi::Role::Active, victim->standby.pid()}),
              HasSubstr("is no child"));
  const pid_t child = child_of(told);  // the child becomes a program of root's
  kernel.files[os::proc_folder(child) + "/status"] = "Name:\tsu\nUid:\t65534\t0\t0\t0\n";
  EXPECT_THAT(refusal(told, abi::Adopt{"mine", abi::Role::Active, child}), HasSubstr("is no child"));
  EXPECT_EQ(tenants_of(told), nlohmann::json::array());
}

/// Its process ends between the look at it and its opening, and the number is a process of root's.
TEST_F(Users, ANumberThatIsAnothersByNowIsNotTakenForTheirs) {
  Peer itself = user_peer(mallory), command = user_peer(mallory), asker = user_peer(mallory);
  ask(command, abi::Place{"mine", abi::Role::Active});
  const pid_t child = child_of(command);
  kernel.before_pidfd = [this](pid_t pid) {
    kernel.files[os::proc_folder(pid) + "/status"] = "Name:\tinnocent\nPPid:\t1\nUid:\t0\t0\t0\t0\n";
  };
  EXPECT_THAT(refusal(itself, abi::Join{"own", abi::Role::Active, "", "a"}), HasSubstr("another one by now"));
  EXPECT_THAT(refusal(command, abi::Adopt{"mine", abi::Role::Active, child}),
              HasSubstr("another one by now"));
  kernel.before_pidfd = nullptr;
  EXPECT_EQ(tenants_of(asker), nlohmann::json::array());
  EXPECT_THAT(detectors.followed, Not(testing::Contains(testing::AnyOf(itself.pid(), child))));
}

// The tenant has no token, and room for a standby.
TEST_F(Users, OneThatWasJoinedByHandGetsNoStandbyOfAnothers) {
  Peer active = user_peer(mallory), thief = user_peer(mallory - 1), own = user_peer(mallory);
  join(active, "mine", abi::Role::Active);
  EXPECT_THAT(refusal(thief, abi::Join{"mine", abi::Role::Standby, "", "a"}), HasSubstr("not the token"));
  join(own, "mine", abi::Role::Standby);
}

/// Whoever has the connection of a process that has ended is not that process, whose number may be another's.
TEST_F(Users, AConnectionIsOfTheProcessThatOpenedIt) {
  Peer attacker = user_peer(mallory);
  attacker.end(kernel);
  for (const abi::Message& request :
       std::initializer_list<abi::Message>{abi::Join{"evil", abi::Role::Active, "", "a"}, abi::StandDown{},
                                           abi::Place{"evil", abi::Role::Active}, abi::StatusRequest{}}) {
    EXPECT_THAT(refusal(attacker, request), HasSubstr("has ended, or is another user's"))
        << abi::encode(request);
  }
  Peer changed = user_peer(mallory);  // the process becomes a program of root's
  kernel.files[os::proc_folder(changed.pid()) + "/status"] = "Name:\tsu\nUid:\t65534\t0\t0\t0\n";
  EXPECT_THAT(refusal(changed, abi::Join{"evil", abi::Role::Active, "", "a"}), HasSubstr("another user's"));
}

TEST_F(Users, AProgramThatHasBecomeAnotherUsersIsNotEndedForThem) {
  Peer command = user_peer(mallory);
  ask(command, abi::Place{"mine", abi::Role::Active});
  const pid_t child = child_of(command);
  ask(command, abi::Adopt{"mine", abi::Role::Active, child});
  kernel.files[os::proc_folder(child) + "/status"] = "Name:\tsu\nUid:\t65534\t0\t0\t0\n";
  EXPECT_EQ(refusal(command, abi::EndTenant{"mine"}),
            "process " + std::to_string(child) + " is another user's by now");
  EXPECT_EQ(refusal(command, abi::EndProcess{"mine", child}),
            "process " + std::to_string(child) + " is another user's by now");
  Peer operators = peer();
  operators.send(abi::EndProcess{"mine", child});
  settle();
  EXPECT_TRUE(std::holds_alternative<abi::Done>(operators.receive().value().message));
}

TEST_F(Users, ATenantThatIsToComeKeepsItsNameAndItsToken) {
  Peer first = user_peer(mallory), second = user_peer(mallory);
  ask(first, abi::Place{"mine", abi::Role::Active});
  ask(second, abi::Place{"mine", abi::Role::Standby});
  first.hang_up();
  settle();
  ask(*owner, abi::Place{"other", abi::Role::Active});  // the operators' own, and not in its place
  Peer thief = user_peer(mallory - 1);
  EXPECT_EQ(refusal(thief, abi::Place{"mine", abi::Role::Active}), "tenant 'mine' is another user's");
  EXPECT_THAT(refusal(thief, abi::Join{"mine", abi::Role::Active, "", "a"}), HasSubstr("not the token"));
}

TEST_F(Users, OneTakesTheRoomOfSoManyTenants) {
  agent.reset();
  restart(2);
  Peer one = user_peer(mallory), two = user_peer(mallory), three = user_peer(mallory),
       four = user_peer(mallory), five = user_peer(mallory), itself = user_peer(mallory);
  ask(one, abi::Place{"one", abi::Role::Active});
  join(two, "two", abi::Role::Active);
  EXPECT_EQ(refusal(three, abi::Place{"three", abi::Role::Active}), "user 65534 has 2 tenants already");
  EXPECT_EQ(refusal(four, abi::Join{"four", abi::Role::Active, "", "a"}), "user 65534 has 2 tenants already");
  EXPECT_EQ(refusal(itself, abi::Adopt{"five", abi::Role::Active, itself.pid()}),
            "user 65534 has 2 tenants already");
  EXPECT_TRUE(std::holds_alternative<abi::Placed>(ask(*owner, abi::Place{"five", abi::Role::Active})));
  std::vector<Peer> many;
  for (int i = 0; i < 3; ++i) {
    many.push_back(user_peer(mallory));
    EXPECT_TRUE(std::holds_alternative<abi::Placed>(ask(many.back(), abi::Place{"one", abi::Role::Active})));
  }
  EXPECT_THAT(refusal(five, abi::Place{"one", abi::Role::Active}), HasSubstr("4 processes of tenant 'one'"));
}

TEST_F(Users, AJoinThatWouldTakeMuchRoomWhileItWaitsIsRefused) {
  Peer one = user_peer(mallory), two = user_peer(mallory);
  EXPECT_THAT(refusal(one, abi::Join{"mine", abi::Role::Active, "", std::string(65, 'x')}),
              HasSubstr("too long"));
  two.send(abi::Join{"mine", abi::Role::Active, "", std::string(64, 'x')});
  settle();
  EXPECT_TRUE(std::holds_alternative<abi::Joined>(two.receive().value().message));
}

TEST_F(Users, WhatAnotherWroteIsNotBelieved) {
  Peer attacker = user_peer(mallory);
  const pid_t innocent = victim->active.pid();
  attacker.send(abi::Output{innocent, "CUDA Exception: Warp Illegal Instruction"});
  settle();
  Peer operators = peer();
  operators.send(abi::Output{innocent, "the same of an operator that has not started it"});
  settle();
  EXPECT_THAT(detectors.output, IsEmpty());
}

TEST_F(Users, AnotherAgentKnowsWhoseTheyAre) {
  Peer theirs = user_peer(mallory);
  join(theirs, "mine", abi::Role::Active);
  agent.reset();
  restart();
  Peer asker = user_peer(mallory), operators = peer();
  ASSERT_EQ(tenants_of(asker).size(), 1u);
  EXPECT_EQ(tenants_of(asker)[0]["name"], "mine");
  EXPECT_EQ(tenants_of(operators)[1]["owner"], mallory);
  EXPECT_THAT(victims(), HasSubstr("\"owner\":0"));
  Peer attacker = user_peer(mallory);
  EXPECT_EQ(refusal(attacker, abi::EndTenant{"llm"}), "tenant 'llm' is another user's");
  EXPECT_EQ(refusal(attacker, abi::Place{"placed", abi::Role::Active}), "tenant 'placed' is another user's");
}

TEST_F(Users, WhoIsRefusedLeavesNothingBehind) {
  Peer mine = user_peer(mallory);
  join(mine, "mine", abi::Role::Active);
  const std::size_t kept = manager.kept.size();
  for (int i = 0; i < 20; ++i) {
    // The process is another tenant's already, and its new connection has named none.
    mine.reconnect();
    settle();
    EXPECT_NE(refusal(mine, abi::Join{"new-" + std::to_string(i), abi::Role::Active, "", "a"}),
              "(not refused)");
    Peer attacker = user_peer(mallory);
    EXPECT_NE(refusal(attacker, abi::Join{"placed", abi::Role::Active, "guessed"}), "(not refused)");
  }
  EXPECT_EQ(nlohmann::json::parse(agent->status_json())["tenants"].size(), 2u);
  EXPECT_EQ(manager.kept.size(), kept);
}

/// Whoever takes all connections that there are takes no operator's.
TEST(ServerRoom, OfOneUserLeavesRoomForOthersAndForOperators) {
  DeafHandler handler;
  const auto directory = std::move(os::TemporaryDirectory::create().value());
  const auto loop = std::move(os::EventLoop::create().value());
  Server server(*loop, handler, {.most = 6, .operators_reserve = 2, .of_user = 3});
  const std::string operators = directory.path() + "/agent", tenants = directory.path() + "/tenants";
  ASSERT_TRUE(server.listen({operators, {}, tenants, {}}));
  std::vector<os::Socket> open;
  const auto come = [&](const std::string& where) -> std::string {
    os::Socket socket = std::move(os::connect(where, Milliseconds(5000)).value());
    while (loop->run_once(Milliseconds(0))) {
    }
    const auto answer = socket.receive(Milliseconds(0));
    open.push_back(std::move(socket));
    if (!answer) return "";
    const std::string_view text(reinterpret_cast<const char*>(answer->bytes.data()), answer->bytes.size());
    return std::get<abi::Refused>(abi::decode(text).value()).reason;
  };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(come(tenants), "");
  EXPECT_THAT(come(tenants), HasSubstr("has 3 connections to the agent already"));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(come(operators), "");
  EXPECT_EQ(come(operators), "the agent has too many connections");
  open.erase(open.begin());  // a tenant's
  while (loop->run_once(Milliseconds(0))) {
  }
  EXPECT_EQ(come(tenants), "the agent has too many connections") << "what is left is the operators'";
  EXPECT_EQ(come(operators), "");
}

/// A server whose requests take 10 ms each, of which a user may have four at once and a tenth of the time
/// then.
struct ServerTime : testing::Test {
  struct Handler final : ServerHandler {
    void on_message(Connection& connection, abi::Message message, std::vector<os::Fd>) override {
      const auto* const named = std::get_if<abi::EndTenant>(&message);
      (connection.asking().entrance == Entrance::Tenants ? tenants : operators)
          .push_back(named == nullptr ? "" : named->tenant);
      clock.advance(Milliseconds(10));
    }
    void on_closed(Connection&) override { ++closed; }
    std::vector<std::string> tenants, operators;
    int closed = 0;
    FakeClock clock;
  };

  ServerTime() { EXPECT_TRUE(server.listen({path("agent"), {}, path("tenants"), {}})); }
  std::string path(const std::string& name) const { return directory.path() + "/" + name; }
  os::Socket come(const std::string& where) {
    auto socket = std::move(os::connect(path(where), Milliseconds(5000)).value());
    settle();
    return socket;
  }
  static void ask(os::Socket& socket, const std::string& name) {
    const std::string letter = abi::encode(abi::EndTenant{name, 0}, 1);
    ASSERT_TRUE(socket.send(std::as_bytes(std::span(letter)), {}, Milliseconds(5000)));
  }
  void settle() {
    while (loop->run_once(Milliseconds(0))) {
    }
  }
  /// Its timers are the machine's, and those that come too early find that nobody may go on yet.
  void pass_until(const std::function<bool()>& done) {
    while (!done()) {
      handler.clock.advance(Milliseconds(10));
      loop->run_once(Milliseconds(1));
    }
  }

  const os::TemporaryDirectory directory = std::move(os::TemporaryDirectory::create().value());
  const std::unique_ptr<os::EventLoop> loop = std::move(os::EventLoop::create().value());
  Handler handler;
  const AllowanceLimits limits{.share = 0.1, .at_once = Milliseconds(35), .longest_wait = Milliseconds(500)};
  /// The pause is longer than any test.
  Server server{*loop,
                handler,
                {.of_user = 20,
                 .clock = &handler.clock,
                 .time_of_user = limits,
                 .refusals_at_once = 3,
                 .refusals_pause = std::chrono::hours(1)}};
};

TEST_F(ServerTime, OfOneUserIsNoMoreThanItsShare) {
  os::Socket socket = come("tenants");
  for (int i = 0; i < 10; ++i) ask(socket, "llm");
  settle();
  EXPECT_EQ(handler.tenants.size(), 4u);
  os::Socket other = come("agent");
  for (int i = 0; i < 10; ++i) ask(other, "llm");
  settle();
  EXPECT_EQ(handler.operators.size(), 10u) << "operators wait for nobody";
  EXPECT_EQ(handler.tenants.size(), 4u);
}

/// A peer with but one connection is served, too, behind all those of the same user.
TEST_F(ServerTime, WhatWaitsIsServedInTheEndAndInItsOrder) {
  std::vector<os::Socket> sockets;
  for (int i = 0; i < 3; ++i) sockets.push_back(come("tenants"));
  for (const char* number : {"1", "2", "3"}) {
    for (std::size_t i = 0; i < sockets.size(); ++i) ask(sockets[i], std::string(1, char('a' + i)) + number);
  }
  settle();
  EXPECT_EQ(handler.tenants.size(), 4u);
  pass_until([&] { return handler.tenants.size() == 9; });
  for (const char name : {'a', 'b', 'c'}) {
    std::string order;
    for (const std::string& each : handler.tenants) {
      if (each.front() == name) order += each.substr(1);
    }
    EXPECT_EQ(order, "123") << name;
  }
}

TEST_F(ServerTime, MoreConnectionsAreNoMoreTime) {
  std::vector<os::Socket> sockets;
  for (int i = 0; i < 20; ++i) {
    sockets.push_back(come("tenants"));
    ask(sockets.back(), "llm");
  }
  settle();
  EXPECT_EQ(handler.tenants.size(), 4u);
}

/// The lines that are written to the log while this is there.
struct WrittenLog {
  WrittenLog() {
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::ostream_sink_st>(text)));
  }
  WrittenLog(const WrittenLog&) = delete;
  WrittenLog& operator=(const WrittenLog&) = delete;
  ~WrittenLog() { spdlog::set_default_logger(before); }
  std::ptrdiff_t lines() const { return std::ranges::count(text.str(), '\n'); }

  std::ostringstream text;
  std::shared_ptr<spdlog::logger> before = spdlog::default_logger();
};

TEST_F(ServerTime, OfOneUsersMistakesTheLogHasALineASecond) {
  const WrittenLog log;
  const auto mistake = [this](const std::string& where) {
    os::Socket socket = come(where);
    const std::string wrong = "{";
    ASSERT_TRUE(socket.send(std::as_bytes(std::span(wrong)), {}, Milliseconds(5000)));
    settle();
  };
  for (int i = 0; i < 5; ++i) mistake("tenants");
  EXPECT_EQ(log.lines(), 1) << log.text.str();
  handler.clock.advance(Milliseconds(1100));
  mistake("tenants");
  EXPECT_EQ(log.lines(), 2) << log.text.str();
  EXPECT_THAT(log.text.str(), HasSubstr("(4 more of user"));
  for (int i = 0; i < 3; ++i) mistake("agent");
  EXPECT_EQ(log.lines(), 5) << "operators are not many";
}

/// The user would have its share anew at once.
TEST_F(ServerTime, WhoLeavesAndComesAgainHasNoMore) {
  for (int i = 0; i < 4; ++i) {
    os::Socket socket = come("tenants");
    ask(socket, "llm");
    settle();
  }
  os::Socket again = come("tenants");
  ask(again, "llm");
  settle();
  EXPECT_EQ(handler.tenants.size(), 4u);
}

/// The door is closed for so many at once: then whoever comes there waits.
TEST_F(ServerTime, WhoHasTakenItsShareIsNotRefusedAsFastAsItComes) {
  std::vector<os::Socket> sockets;
  for (int i = 0; i < 20; ++i) {
    sockets.push_back(come("tenants"));
    ask(sockets.back(), "llm");
  }
  settle();
  std::size_t refused = 0;
  for (int i = 0; i < 10; ++i) {
    os::Socket one = come("tenants");
    refused += one.receive(Milliseconds(0)).has_value();
    sockets.push_back(std::move(one));
  }
  EXPECT_EQ(refused, 3u);
  os::Socket other = come("agent");
  ask(other, "llm");
  settle();
  EXPECT_EQ(handler.operators.size(), 1u) << "their door is another";
}

/// A peer's end is seen at its turn.
TEST_F(ServerTime, WhoHangsUpMeanwhileIsForgotten) {
  std::optional<os::Socket> socket = come("tenants");
  for (int i = 0; i < 5; ++i) ask(*socket, "llm");
  settle();
  socket.reset();
  pass_until([&] { return handler.closed == 1; });
  EXPECT_EQ(handler.tenants.size(), 5u) << "what it said before counts";
}

}  // namespace
}  // namespace firebreak::agent
