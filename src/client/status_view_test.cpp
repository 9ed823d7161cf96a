// SPDX-License-Identifier: Apache-2.0
#include "client/status_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace firebreak::client {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* status = R"({
  "domains": [{"name": "a", "server_pids": [31, 32]}, {"name": "b", "server_pids": []}],
  "tenants": [
    {"name": "other", "phase": "lost", "standby_state": "none", "active": null, "standby": null},
    {"name": "llm", "phase": "serving", "standby_state": "ready", "epoch": 2, "committed_steps": 40,
     "active": {"pid": 7, "domain": "a"}, "standby": {"pid": 8, "domain": "b"}}]})";

TEST(StatusView, HoldsWhatATenantIs) {
  const auto llm = view_of(status, "llm");
  ASSERT_TRUE(llm);
  EXPECT_EQ(llm->phase, "serving");
  EXPECT_EQ(llm->standby_state, "ready");
  EXPECT_EQ(llm->active, 7);
  EXPECT_EQ(llm->active_domain, "a");
  EXPECT_EQ(llm->standby, 8);
  EXPECT_EQ(llm->epoch, 2u);
  EXPECT_EQ(llm->committed_steps, 40u);
  EXPECT_EQ(view_of(status, "other")->active, 0);
  EXPECT_EQ(count_tenants(status), 2u);
}

TEST(StatusView, HoldsTheServersOfADomain) {
  EXPECT_THAT(servers_of(status, "a"), ElementsAre(31, 32));
  EXPECT_THAT(servers_of(status, "b"), IsEmpty());
  EXPECT_THAT(servers_of(status, "c"), IsEmpty());
}

TEST(StatusView, WhatIsNoStatusHoldsNobody) {
  for (const char* text :
       {"", "[]", "7", "{}", R"({"tenants": 1, "domains": {}})",
        R"({"tenants": [1, {"name": 2}], "domains": [{"name": "a", "server_pids": ["x"]}]})"}) {
    EXPECT_FALSE(view_of(text, "llm")) << text;
    EXPECT_THAT(servers_of(text, "a"), IsEmpty()) << text;
  }
}

}  // namespace
}  // namespace firebreak::client
