// SPDX-License-Identifier: Apache-2.0
#include "shared/link/status_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace firebreak::link {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::FieldsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

constexpr const char* status = R"({
  "tenants_socket": "/run/firebreak/tenants.sock",
  "domains": [{"name": "a", "gpu": "GPU-1", "state": "draining", "server_pids": [31, 32], "parking": {"state": "held", "culprits": [7]}},
              {"name": "b", "server_pids": [], "parking": null}],
  "tenants": [
    {"name": "other", "phase": "lost", "standby_state": "none", "active": null, "standby": null},
    {"name": "llm", "phase": "serving", "standby_state": "ready", "epoch": 2, "committed_steps": 40,
     "active": {"pid": 7, "domain": "a"}, "standby": {"pid": 8, "domain": "b"}}]})";

TEST(StatusView, HoldsWhatATenantIs) {
  const StatusView view = parse_status(status);
  const auto llm = view.tenant("llm");
  ASSERT_TRUE(llm);
  EXPECT_EQ(llm->phase, pair::Phase::Serving);
  EXPECT_EQ(llm->standby_state, pair::Standby::Ready);
  EXPECT_EQ(llm->active, 7);
  EXPECT_EQ(llm->active_domain, "a");
  EXPECT_EQ(llm->standby, 8);
  EXPECT_EQ(llm->epoch, 2u);
  EXPECT_EQ(llm->committed_steps, 40u);
  EXPECT_EQ(view.tenant("other")->active, 0);
  EXPECT_EQ(view.tenants.size(), 2u);
  EXPECT_FALSE(view.tenant("nobody"));
}

TEST(StatusView, HoldsTheServersOfADomain) {
  EXPECT_THAT(parse_status(status).servers,
              ElementsAre(Pair("a", ElementsAre(31, 32)), Pair("b", IsEmpty())));
}

TEST(StatusView, HoldsTheDomainsAndWhereTenantsAsk) {
  const StatusView view = parse_status(status);
  EXPECT_EQ(view.tenants_socket, "/run/firebreak/tenants.sock");
  EXPECT_THAT(view.domains, ElementsAre(FieldsAre("a", "GPU-1", "draining", ""), FieldsAre("b", "", "", "")));
}

TEST(StatusView, HoldsHowParkingStandsWhereDomainsAreParked) {
  const StatusView view = parse_status(status);
  ASSERT_THAT(view.parking, SizeIs(1));
  EXPECT_EQ(view.parking.at("a").state, "held");
  EXPECT_THAT(view.parking.at("a").culprits, ElementsAre(7));
}

TEST(StatusView, HoldsTheLastFaults) {
  const StatusView view = parse_status(R"({"counts": {"past_faults": [
      {"at_ns": 11, "class": "sm", "outcome": "lost", "domain": "a", "culprit": "rogue", "what": "Xid 13",
       "control_group": "/kubepods/pod1", "id": "1mjnajx", "at": "2025-11-29T08:10:05Z"}, 7, {"at_ns": "x"}]}})");
  EXPECT_THAT(view.faults, ElementsAre(FieldsAre(11, "sm", "lost", "a", "rogue", "Xid 13", "/kubepods/pod1",
                                                 "1mjnajx", "2025-11-29T08:10:05Z"),
                                       FieldsAre(0, "", "", "", "", "", "", "", "")));
  EXPECT_THAT(parse_status(status).faults, IsEmpty()) << "an older agent, or to a tenant";
}

TEST(StatusView, ADomainThatIsParkedTakesNoClients) {
  const auto first = [](const std::string& parking) {
    const StatusView view =
        parse_status(R"({"domains": [{"name": "a", "state": "serving", "parking": )" + parking + "}]}");
    return state_of(view, view.domains.at(0));
  };
  EXPECT_EQ(first("null"), "serving");
  EXPECT_EQ(first(R"({"state": "ready"})"), "serving");
  EXPECT_EQ(first(R"({"state": "off"})"), "serving");
  EXPECT_EQ(first(R"({"state": "held"})"), "parked");
}

TEST(StatusView, WhatIsNoStatusHoldsNobody) {
  for (const char* text :
       {"", "[]", "7", "{}", R"({"tenants": 1, "domains": {}})",
        R"({"tenants": [1, {"name": 2}], "domains": [{"name": "a", "server_pids": ["x"]}]})"}) {
    const StatusView view = parse_status(text);
    EXPECT_FALSE(view.tenant("llm")) << text;
    EXPECT_EQ(view.tenants_socket, "") << text;
    EXPECT_THAT(view.servers, Each(Pair("a", IsEmpty()))) << text;
  }
}

}  // namespace
}  // namespace firebreak::link
