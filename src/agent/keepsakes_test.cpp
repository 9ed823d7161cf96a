// SPDX-License-Identifier: Apache-2.0
#include "agent/keepsakes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace firebreak::agent {
namespace {

KeptTenant some_tenant() {
  KeptTenant tenant;
  tenant.name = "llm";
  tenant.token = "0123";
  tenant.pair = {pair::Phase::Promoting, pair::Standby::Joined, 7};
  tenant.strays = abi::StrayPolicy::Report;
  tenant.ended_by_us = true;
  tenant.active = {41, "1234567", "4096:8192", "a", {25, 1024}};
  tenant.old_active = {40, "1234000", "", "b", {}};
  tenant.allocations = {{"weights", 0x500000000000, 4096, abi::Memory::Weights}};
  return tenant;
}

TEST(Keepsakes, EveryFieldSurvives) {
  KeptText text;
  const auto read = decode_kept(text.update({some_tenant()}, {{"b", 42, "1234567"}}).value_or(""));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_THAT(read->servers, testing::ElementsAre(KeptServer{"b", 42, "1234567"}));
  ASSERT_EQ(read->tenants.size(), 1u);
  const KeptTenant& tenant = read->tenants.front();
  EXPECT_EQ(tenant.name, "llm");
  EXPECT_EQ(tenant.token, "0123");
  EXPECT_EQ(tenant.pair, (pair::State{pair::Phase::Promoting, pair::Standby::Joined, 7}));
  EXPECT_EQ(tenant.strays, abi::StrayPolicy::Report);
  EXPECT_TRUE(tenant.ended_by_us);
  EXPECT_EQ(tenant.active.pid, 41);
  EXPECT_EQ(tenant.active.start_time, "1234567");
  EXPECT_EQ(tenant.active.image, "4096:8192");
  EXPECT_EQ(tenant.active.domain, "a");
  EXPECT_EQ(tenant.active.limits.sm_percent, 25u);
  EXPECT_EQ(tenant.active.limits.memory_mib, 1024u);
  EXPECT_EQ(tenant.standby.pid, 0);
  EXPECT_EQ(tenant.old_active.pid, 40);
  ASSERT_EQ(tenant.allocations.size(), 1u);
  EXPECT_EQ(tenant.allocations[0].address, 0x500000000000u);
  EXPECT_EQ(tenant.allocations[0].memory, abi::Memory::Weights);
}

std::vector<std::string> names_in(const std::optional<std::string_view>& text) {
  std::vector<std::string> names;
  const auto kept = decode_kept(text.value_or(""));
  if (!kept) return {kept.error().message};
  for (const KeptTenant& each : kept->tenants) names.push_back(each.name);
  return names;
}

TEST(KeptText, IsThereOnlyWhereSomethingHasChanged) {
  KeptText text;
  EXPECT_EQ(names_in(text.update({})), std::vector<std::string>{});
  EXPECT_EQ(text.update({}), std::nullopt);
  std::vector<KeptTenant> tenants = {some_tenant()};
  EXPECT_TRUE(text.update(tenants));
  EXPECT_EQ(text.update(tenants), std::nullopt);
  EXPECT_TRUE(text.update(tenants, {{"a", 1, "2"}}));
  EXPECT_EQ(text.update(tenants, {{"a", 1, "2"}}), std::nullopt);
  tenants[0].allocations[0].size_bytes = 8192;
  const auto changed = decode_kept(text.update(tenants).value_or(""));
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->tenants.front().allocations[0].size_bytes, 8192u);
}

TEST(KeptText, KnowsWhoCameAndWhoWent) {
  KeptText text;
  std::vector<KeptTenant> tenants(3, some_tenant());
  tenants[0].name = "a", tenants[1].name = "b", tenants[2].name = "c";
  EXPECT_EQ(names_in(text.update(tenants)), (std::vector<std::string>{"a", "b", "c"}));
  tenants.erase(tenants.begin());
  EXPECT_EQ(names_in(text.update(tenants)), (std::vector<std::string>{"b", "c"}));
  tenants.pop_back();
  EXPECT_EQ(names_in(text.update(tenants)), std::vector<std::string>{"b"});
  tenants.clear();
  EXPECT_EQ(names_in(text.update(tenants)), std::vector<std::string>{});
}

TEST(Keepsakes, NonsenseAndOtherVersionsAreRefused) {
  EXPECT_FALSE(decode_kept(""));
  EXPECT_FALSE(decode_kept("[]"));
  EXPECT_FALSE(decode_kept(R"({"version":1,"tenants":[{}]})"));
  EXPECT_THAT(decode_kept(R"({"version":9,"tenants":[]})").error().message, testing::HasSubstr("version 9"));
}

TEST(KeptDocument, ShowsTheLastOfManyToWhoOpensItAnew) {
  KeptDocument document = std::move(KeptDocument::create().value());
  EXPECT_EQ(document.read(), "");
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(document.write("text " + std::to_string(i)));
  const KeptDocument again = std::move(KeptDocument::open(os::Fd(::dup(document.descriptor()))).value());
  EXPECT_EQ(again.read(), "text 4");
}

/// Killed in the middle of writing one, it still shows the one before.
TEST(KeptDocument, IsNeverTorn) {
  KeptDocument document = std::move(KeptDocument::create().value());
  ASSERT_TRUE(document.write("the older one"));
  ASSERT_TRUE(document.write("the newer one"));
  const std::size_t size_bytes = os::file_size(document.descriptor()).value();
  const os::Mapping raw =
      std::move(os::Mapping::of_file(document.descriptor(), size_bytes, os::Protection::ReadWrite).value());
  const std::string_view all(reinterpret_cast<const char*>(raw.bytes().data()), size_bytes);
  const std::size_t at = all.find("the newer one");
  ASSERT_NE(at, std::string_view::npos);
  raw.bytes()[at + 4] = std::byte{'N'};
  EXPECT_EQ(document.read(), "the older one");
}

TEST(KeptDocument, OnlyOursAreOpened) {
  EXPECT_FALSE(KeptDocument::open(std::move(os::create_memory_file("other", 4096).value())));
}

}  // namespace
}  // namespace firebreak::agent
