// SPDX-License-Identifier: Apache-2.0
#include "commands/cluster/api_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/doubles/cluster/api_server_stand_in.h"

namespace firebreak::cluster {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class ApiServerTest : public testing::Test {
 protected:
  std::unique_ptr<ApiServerStandIn> stand_in = std::make_unique<ApiServerStandIn>();
  Result<ApiAccess> access = ApiAccess{stand_in->url(), stand_in->authorities(), "secret"};
  std::unique_ptr<ApiServer> server = make({});

  std::unique_ptr<ApiServer> make(ApiServer::Patience patience) {
    return std::make_unique<ApiServer>([this] { return access; }, "firebreak-k8s/1", patience);
  }
  const ApiCall node = get_node("n1");
  ApiCall condition() const {
    return set_condition("n1", {"True", "Why", "what"}, "2026-01-01T00:00:00Z", {});
  }
};

TEST_F(ApiServerTest, IsAskedAndAnswers) {
  const ApiAnswer answer = server->send(node);
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_TRUE(known_condition_in(answer.body));
  EXPECT_EQ(server->send(condition()).status, 200);
  const auto heard = stand_in->heard();
  ASSERT_EQ(heard.size(), 2u);
  EXPECT_EQ(heard[0].method, "GET");
  EXPECT_EQ(heard[0].path, "/api/v1/nodes/n1");
  EXPECT_EQ(heard[0].authorization, "Bearer secret");
  EXPECT_EQ(heard[1].content_type, "application/strategic-merge-patch+json");
  EXPECT_EQ(stand_in->condition("FirebreakDomainFault")["status"], "True");
  EXPECT_EQ(stand_in->condition("Ready")["status"], "True") << "the others stay";
}

TEST_F(ApiServerTest, IsAskedForNamesAloneWhereItHasAList) {
  stand_in->add_pod("x", "y", "1");
  const ApiAnswer pods = server->send(list_pods("n1"));
  EXPECT_EQ(pods.status, 200) << pods.body;
  EXPECT_THAT(pods.body, HasSubstr("PartialObjectMetadataList"));
  EXPECT_EQ(pods_in(pods.body).size(), 1u);
  for (const ApiCall& call : {node, condition()}) {
    const ApiAnswer answer = server->send(call);
    EXPECT_EQ(answer.status, 200) << call.method << " " << answer.body;
  }
}

TEST_F(ApiServerTest, KnowsUsByACertificate) {
  const auto identity = stand_in->identity_of("system:node:n1");
  access = ApiAccess{stand_in->url(), stand_in->authorities(), "", identity.certificate, identity.key};
  EXPECT_EQ(server->send(node).status, 200);
  EXPECT_EQ(stand_in->heard().at(0).client, "system:node:n1");
  EXPECT_EQ(stand_in->heard().at(0).authorization, "");
}

TEST_F(ApiServerTest, ThatNobodyVouchesForIsToldNothing) {
  const ApiServerStandIn other;
  access->authorities = other.authorities();
  const ApiAnswer answer = server->send(node);
  EXPECT_EQ(answer.status, 0);
  EXPECT_THAT(answer.described(), HasSubstr("certificate"));
  access->authorities = "";
  EXPECT_EQ(server->send(node).status, 0) << "this machine's do not either";
  access->authorities = stand_in->authorities();
  access->url = "https://localhost:" + std::to_string(stand_in->port());
  EXPECT_EQ(server->send(node).status, 0) << "its certificate is of another name";
  EXPECT_THAT(stand_in->heard(), IsEmpty()) << "and the token stays here";
}

TEST_F(ApiServerTest, ThatIsAwayIsWhyThereIsNoAnswer) {
  const int port = stand_in->port();
  EXPECT_EQ(server->send(node).status, 200);
  stand_in.reset();
  const ApiAnswer answer = server->send(node);
  EXPECT_EQ(answer.status, 0);
  EXPECT_THAT(answer.described(), HasSubstr("https://127.0.0.1:" + std::to_string(port)));
  stand_in = std::make_unique<ApiServerStandIn>(port);
  access->authorities = stand_in->authorities();
  EXPECT_EQ(server->send(node).status, 200) << "as soon as it is there again";
}

TEST_F(ApiServerTest, WhatItRefusesIsItsAnswer) {
  for (const int status : {401, 403, 409, 429, 500, 503}) {
    stand_in->do_instead({.status = status, .header = status == 429 ? "Retry-After: 7" : ""});
    const ApiAnswer answer = server->send(node);
    EXPECT_EQ(answer.status, status);
    EXPECT_EQ(answer.described(), "HTTP " + std::to_string(status) + ": mischief");
    EXPECT_EQ(answer.wait, std::chrono::seconds(status == 429 ? 7 : 0));
  }
}

TEST_F(ApiServerTest, ThatWantsToBeLeftAloneForAgesIsSoForADay) {
  stand_in->do_instead({.status = 429, .header = "Retry-After: 99999999999999"});
  EXPECT_EQ(server->send(node).wait, std::chrono::hours(24));
}

TEST_F(ApiServerTest, ThatIsSlowIsWaitedForSoLong) {
  server = make({Milliseconds(5'000), Milliseconds(100)});
  stand_in->do_instead({.kind = Mischief::Kind::DoAndBeLate});
  auto answer = std::async(std::launch::async, [this] { return server->send(condition()); });
  EXPECT_EQ(answer.wait_for(std::chrono::minutes(1)), std::future_status::ready) << "it waits for ever";
  stand_in->release();
  EXPECT_EQ(answer.get().status, 0);
  const ApiServer::Patience usual;
  for (const Milliseconds limit : {usual.to_connect, usual.to_answer})
    EXPECT_GT(limit, Milliseconds(0)) << "which libcurl takes for no limit";
  EXPECT_EQ(stand_in->condition("FirebreakDomainFault")["status"], "True") << "it was told all the same";
  server = make({});
  EXPECT_EQ(server->send(node).status, 200);
}

TEST_F(ApiServerTest, AnAnswerThatIsLostOrCutIsNone) {
  stand_in->do_instead(
      {.kind = Mischief::Kind::DoAndLose, .times = 2});  // libcurl asks a kept connection twice
  EXPECT_EQ(server->send(node).status, 0);
  stand_in->forget_mischief();
  stand_in->do_instead({.kind = Mischief::Kind::Cut});
  EXPECT_THAT(server->send(node).described(), HasSubstr("remaining to read"));
  const ApiAnswer next = server->send(node);
  EXPECT_EQ(next.status, 200) << next.body;
}

TEST_F(ApiServerTest, ARedirectionIsNotFollowed) {
  const ApiServerStandIn other;
  stand_in->do_instead({.status = 302, .header = "Location: " + other.url() + "/api/v1/nodes/n1"});
  EXPECT_EQ(server->send(node).status, 302);
  EXPECT_THAT(other.heard(), IsEmpty());
}

TEST_F(ApiServerTest, WhoHasNoAccessAsksNobody) {
  access = fail(ErrorCode::NotFound, "cannot read /etc/firebreak/kubeconfig");
  const ApiAnswer answer = server->send(node);
  EXPECT_EQ(answer.status, 0);
  EXPECT_EQ(answer.described(), "cannot read /etc/firebreak/kubeconfig");
  access = ApiAccess{"ftp://127.0.0.1/", "", "secret"};
  EXPECT_EQ(server->send(node).status, 0);
  EXPECT_THAT(stand_in->heard(), IsEmpty());
}

TEST_F(ApiServerTest, ATokenThatWasMadeAnewIsTakenAtOnce) {
  access->token = "old";
  EXPECT_EQ(server->send(node).status, 401);
  access->token = "secret";
  EXPECT_EQ(server->send(node).status, 200);
}

TEST_F(ApiServerTest, WhoGivesUpWaitsNoLonger) {
  stand_in->do_instead({.kind = Mischief::Kind::DoAndBeLate});
  server = make({std::chrono::hours(1), std::chrono::hours(1)});
  std::thread other([this] {
    EXPECT_TRUE(stand_in->wait([this] { return !stand_in->heard().empty(); }));
    server->give_up();
  });
  EXPECT_EQ(server->send(node).status, 0);
  other.join();
}

}  // namespace
}  // namespace firebreak::cluster
