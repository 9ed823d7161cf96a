// SPDX-License-Identifier: Apache-2.0
#include "commands/cluster/messenger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>

#include "commands/cluster/api_server.h"
#include "tests/doubles/cluster/api_server_stand_in.h"

namespace firebreak::cluster {
namespace {

using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

constexpr const char* uid = "0a1b2c3d-0e1f-4a5b-8c6d-7e8f90a1b2c3";
constexpr const char* condition_type = Condition::type;

/// The messenger as it is, but for the agent and the API server: threads, TLS, decisions. Time goes on by a
/// second with each look at the clock, so that nobody waits for pauses.
class MessengerTest : public testing::Test {
 protected:
  std::unique_ptr<ApiServerStandIn> stand_in = std::make_unique<ApiServerStandIn>();
  const int port = stand_in->port();
  std::mutex mutex;  ///< guards the next three
  std::vector<std::string> lines;
  Instant now{Monotonic(std::chrono::hours(10)), std::chrono::system_clock::now()};
  ApiAccess access{stand_in->url(), stand_in->authorities(), "secret"};
  std::unique_ptr<ApiServer> server;
  std::unique_ptr<Messenger> messenger;
  nlohmann::json status = nlohmann::json::parse(
      R"({"domains": [{"name": "a", "state": "serving"}, {"name": "b", "state": "serving"}],
          "counts": {"past_faults": []}})");

  MessengerTest() { stand_in->add_pod("x", "y", uid); }
  ~MessengerTest() override { end(); }

  void start() {
    end();
    server = std::make_unique<ApiServer>(
        [this]() -> Result<ApiAccess> {
          const std::lock_guard lock(mutex);
          return access;
        },
        "firebreak-k8s/1", ApiServer::Patience{Milliseconds(5'000), Milliseconds(200)});
    messenger = std::make_unique<Messenger>(
        Reporter("n1", std::chrono::seconds(30)),
        Messenger::Surroundings{[this] {
                                  const std::lock_guard lock(mutex);
                                  now.monotonic += std::chrono::seconds(1);
                                  return now;
                                },
                                [this](const ApiCall& call) { return server->send(call); },
                                [this] { server->give_up(); },
                                [this](const std::string& line) {
                                  const std::lock_guard lock(mutex);
                                  lines.push_back(line);
                                }});
  }
  void end() {
    messenger.reset();
    server.reset();
  }
  void restart_server() {
    stand_in = std::make_unique<ApiServerStandIn>(port);
    stand_in->add_pod("x", "y", uid);
    const std::lock_guard lock(mutex);
    access.authorities = stand_in->authorities();
  }
  void add_fault() {
    const std::lock_guard lock(mutex);
    status["counts"]["past_faults"].push_back({{"at_ns", static_cast<std::uint64_t>(to_ns(now.monotonic))},
                                               {"class", "sm"},
                                               {"outcome", "lost"},
                                               {"domain", "a"},
                                               {"culprit", "rogue"},
                                               {"what", "trap"},
                                               {"control_group", std::string("/kubepods/pod") + uid + "/c"}});
  }
  /// The agent is heard again and again until that is so.
  bool until(const std::function<bool()>& holds) {
    return stand_in->wait([&] {
      messenger->hear(status.dump());
      return holds();
    });
  }
  bool until_condition(const std::string& wanted) {
    return until([&] {
      const auto now_has = stand_in->condition(condition_type);
      return now_has.is_object() && now_has["status"] == wanted;
    });
  }
  bool until_fault_is_told() {
    return until([this] {
      return stand_in->events().size() == 2 && !stand_in->annotation(uid, "firebreak.dev/last-fault").empty();
    });
  }
  std::vector<std::string> told() {
    const std::lock_guard lock(mutex);
    return lines;
  }
};

TEST_F(MessengerTest, TheConditionComesAndGoesAndTheFaultIsToldOnce) {
  start();
  ASSERT_TRUE(until_condition("False"));
  status["domains"][0]["state"] = "draining";
  add_fault();
  ASSERT_TRUE(until_condition("True"));
  ASSERT_TRUE(until_fault_is_told());
  EXPECT_THAT(stand_in->annotation(uid, "firebreak.dev/last-fault"), HasSubstr("trap (sm) in domain a"));
  status["domains"][0]["state"] = "serving";
  ASSERT_TRUE(until_condition("False"));
  EXPECT_EQ(stand_in->count("POST", "/events"), 2u);
}

TEST_F(MessengerTest, ARestartOfThisProgramChangesNothing) {
  start();
  status["domains"][0]["state"] = "draining";
  add_fault();
  ASSERT_TRUE(until_condition("True"));
  ASSERT_TRUE(until_fault_is_told());
  const auto changed = stand_in->condition(condition_type)["lastTransitionTime"];
  now.wall += std::chrono::hours(1);
  start();
  const std::size_t before = stand_in->count("PATCH", "/pods/y/status");
  ASSERT_TRUE(until([&] { return stand_in->count("PATCH", "/pods/y/status") > before; }))
      << "it tells all again";
  EXPECT_EQ(stand_in->condition(condition_type)["status"], "True");
  EXPECT_EQ(stand_in->condition(condition_type)["lastTransitionTime"], changed);
  EXPECT_THAT(stand_in->events(), SizeIs(2));
}

TEST_F(MessengerTest, AServerThatWasAwayIsToldOnceItIsThere) {
  start();
  ASSERT_TRUE(until_condition("False"));
  stand_in.reset();
  status["domains"][0]["state"] = "draining";
  add_fault();
  for (int i = 0; i < 1'000 && told().size() < 2; ++i) {
    messenger->hear(status.dump());
    std::this_thread::yield();
  }
  restart_server();
  ASSERT_TRUE(until_condition("True")) << testing::PrintToString(told());
  ASSERT_TRUE(until_fault_is_told());
  EXPECT_THAT(stand_in->events(), SizeIs(2));
}

/// A server's trouble with each call of a fault and of the condition in turn. libcurl itself asks once more
/// for an answer that is lost on a connection that was kept.
struct Trouble {
  const char* name;
  Mischief mischief;
};
class UnderMischief : public MessengerTest, public testing::WithParamInterface<Trouble> {};

TEST_P(UnderMischief, AllIsToldOnceInTheEnd) {
  start();
  ASSERT_TRUE(until_condition("False"));
  for (const auto& [method, path_has] :
       std::vector<std::pair<std::string, std::string>>{{"PATCH", "/nodes/n1/status"},
                                                        {"GET", "/pods"},
                                                        {"POST", "default/events"},
                                                        {"POST", "x/events"},
                                                        {"PATCH", "/pods/y/status"}}) {
    Mischief mischief = GetParam().mischief;
    mischief.method = method;
    mischief.path_has = path_has;
    stand_in->do_instead(mischief);
  }
  status["domains"][0]["state"] = "draining";
  add_fault();
  ASSERT_TRUE(until_condition("True")) << testing::PrintToString(told());
  ASSERT_TRUE(until_fault_is_told()) << testing::PrintToString(told());
  EXPECT_THAT(stand_in->events(), SizeIs(2));
  EXPECT_GT(stand_in->count("PATCH", "/nodes/n1/status"), 2u) << "it was in the way";
  EXPECT_THAT(told(), Each(Not(HasSubstr("secret"))));
  EXPECT_THAT(told(), Contains(HasSubstr(GetParam().mischief.kind == Mischief::Kind::Answer
                                             ? "HTTP " + std::to_string(GetParam().mischief.status)
                                             : "https://127.0.0.1")));
}

INSTANTIATE_TEST_SUITE_P(
    Of, UnderMischief,
    testing::Values(Trouble{"Unauthorized", {.status = 401}}, Trouble{"Forbidden", {.status = 403}},
                    Trouble{"TooMany", {.status = 429, .header = "Retry-After: 3"}},
                    Trouble{"Broken", {.status = 500}}, Trouble{"Unavailable", {.status = 503}},
                    Trouble{"LostAnswers", {.kind = Mischief::Kind::DoAndLose, .times = 2}},
                    Trouble{"LateAnswers", {.kind = Mischief::Kind::DoAndBeLate}},
                    Trouble{"CutAnswers", {.kind = Mischief::Kind::Cut}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_F(MessengerTest, AnotherPodUnderTheNameIsNotAnnotated) {
  start();
  ASSERT_TRUE(until_condition("False"));
  stand_in->do_instead({.status = 500, .method = "PATCH", .path_has = "/pods/y/status"});
  add_fault();
  ASSERT_TRUE(until([this] { return stand_in->count("PATCH", "/pods/y/status") == 1; }));
  stand_in->remove_pod(uid);
  stand_in->add_pod("x", "y", "9a1b2c3d-0e1f-4a5b-8c6d-7e8f90a1b2c3");
  ASSERT_TRUE(until([this] { return stand_in->count("GET", "/pods") == 2; }));
  ASSERT_TRUE(until([this] { return stand_in->count("POST", "default/events") == 2; }));
  EXPECT_EQ(stand_in->annotation("9a1b2c3d-0e1f-4a5b-8c6d-7e8f90a1b2c3", "firebreak.dev/last-fault"), "");
}

TEST_F(MessengerTest, ItsEndWaitsForNoServer) {
  stand_in->do_instead({.kind = Mischief::Kind::DoAndBeLate, .times = 1'000});
  start();
  server = std::make_unique<ApiServer>([this] { return Result<ApiAccess>(access); }, "firebreak-k8s/1",
                                       ApiServer::Patience{std::chrono::hours(1), std::chrono::hours(1)});
  ASSERT_TRUE(until([this] { return !stand_in->heard().empty(); }));
  messenger.reset();
  EXPECT_EQ(stand_in->heard().size(), 1u);
}

TEST(MessengerEnd, BetweenTwoCallsIsBeforeTheSecond) {
  std::mutex mutex;
  std::condition_variable changed;
  int calls = 0;
  bool is_given_up = false;
  const auto send = [&](const ApiCall&) {
    std::unique_lock lock(mutex);
    ++calls;
    changed.notify_all();
    changed.wait(lock, [&] { return is_given_up; });
    return ApiAnswer{200, R"({"kind": "Node"})"};
  };
  const auto give_up = [&] {
    const std::lock_guard lock(mutex);
    is_given_up = true;
    changed.notify_all();
  };
  {
    Messenger messenger(Reporter("n1", std::chrono::seconds(30)),
                        {[] {
                           return Instant{Monotonic(std::chrono::hours(10)), {}};
                         },
                         send, give_up, [](const std::string&) {}});
    messenger.hear(std::string(R"({"domains": [{"name": "a", "state": "serving"}]})"));
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return calls == 1; });
  }
  EXPECT_EQ(calls, 1) << "the node was read, and its condition is the next one's";
}

}  // namespace
}  // namespace firebreak::cluster
