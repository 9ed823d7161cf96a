// SPDX-License-Identifier: Apache-2.0
#include "agent/tenants/kept_state.h"

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
  tenant.processes = {
      {39, "b", true, {"4096:8191", {std::uint64_t{1} << 61, 7}, {{38, "1233000", "sleep", false}}}},
      {41, "a", false, {"4096:8192", {9}, {{37, "1232000", "no \"quotes\"", true}}}}};
  tenant.last_connection = 9;
  tenant.owner = 1000;
  return tenant;
}

std::vector<vault::Entry> some_memory(std::size_t count) {
  std::vector<vault::Entry> entries(count);
  for (std::size_t i = 0; i < count; ++i) {
    entries[i].name = "weights-" + std::to_string(i);
    entries[i].address = 0x500000000000 + i * 4096;
    entries[i].size_bytes = 4096;
    entries[i].memory = abi::Memory::Weights;
  }
  return entries;
}

TEST(KeptState, EveryFieldSurvives) {
  KeptText text;
  ClientConnections clients;
  std::map<std::uint64_t, os::Fd> open;
  open.emplace(7, os::Fd());
  clients.restore(9, {}, std::move(open));
  const auto tenant = decode_tenant(text.update(some_tenant(), some_memory(2), clients).value_or(""));
  ASSERT_TRUE(tenant) << tenant.error().message;
  EXPECT_EQ(tenant->name, "llm");
  EXPECT_EQ(tenant->token, "0123");
  EXPECT_EQ(tenant->pair, (pair::State{pair::Phase::Promoting, pair::Standby::Joined, 7}));
  EXPECT_EQ(tenant->strays, abi::StrayPolicy::Report);
  EXPECT_TRUE(tenant->ended_by_us);
  EXPECT_EQ(tenant->active.pid, 41);
  EXPECT_EQ(tenant->active.start_time, "1234567");
  EXPECT_EQ(tenant->active.image, "4096:8192");
  EXPECT_EQ(tenant->active.domain, "a");
  EXPECT_EQ(tenant->active.limits.sm_percent, 25u);
  EXPECT_EQ(tenant->active.limits.memory_mib, 1024u);
  EXPECT_EQ(tenant->standby.pid, 0);
  EXPECT_EQ(tenant->old_active.pid, 40);
  EXPECT_EQ(tenant->processes, some_tenant().processes);
  ASSERT_EQ(tenant->allocations.size(), 2u);
  EXPECT_EQ(tenant->allocations[1].name, "weights-1");
  EXPECT_EQ(tenant->allocations[1].address, 0x500000001000u);
  EXPECT_EQ(tenant->allocations[1].memory, abi::Memory::Weights);
  EXPECT_EQ(tenant->connections, std::vector<std::uint64_t>{7});
  EXPECT_EQ(tenant->last_connection, 9u);
  EXPECT_EQ(tenant->owner, 1000u);
  Counts counts;
  counts.agent_starts = 2;
  counts.of_fault(fault::FaultClass::Device, FaultOutcome::Lost) = 3;
  const KeptCommon common = {{{"b", 42, "1234567"}},
                             {{"rogue", abi::Role::Standby, "a", {25, 1024}, "4567", 1000}},
                             {"gone", "gone too"},
                             counts};
  EXPECT_EQ(decode_common(encode_common(common)).value(), common);
}

TEST(KeptState, AnOlderAgentKeptNoPlacements) {
  const auto common = decode_common(R"({"version":2,"servers":[]})");
  ASSERT_TRUE(common) << common.error().message;
  EXPECT_EQ(*common, KeptCommon{});
}

// A process's name is bytes.
TEST(KeptState, ANameThatIsNoTextIsKeptAllTheSame) {
  KeptTenant tenant = some_tenant();
  tenant.processes[0].traces.others[0].name = "\xff\xfe";
  KeptText text;
  const auto read = decode_tenant(text.update(tenant, {}, ClientConnections()).value_or(""));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->processes[0].traces.others[0].pid, 38);
}

TEST(KeptState, AnOlderAgentKeptNoProcesses) {
  KeptText text;
  KeptTenant tenant = some_tenant();
  tenant.processes.clear();
  std::string older(text.update(tenant, {}, ClientConnections()).value_or(""));
  const std::string field = "\"processes\":[],";
  ASSERT_NE(older.find(field), std::string::npos);
  older.erase(older.find(field), field.size());
  const auto read = decode_tenant(older);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(read->processes.empty());
}

TEST(KeptState, AnOlderAgentKeptNoOwner) {
  KeptText text;
  std::string older(text.update(some_tenant(), {}, ClientConnections()).value_or(""));
  const std::string field = "\"owner\":1000,";
  ASSERT_NE(older.find(field), std::string::npos);
  older.erase(older.find(field), field.size());
  const auto read = decode_tenant(older);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->owner, std::nullopt);
}

TEST(KeptText, IsThereOnlyWhereSomethingHasChanged) {
  KeptText text;
  KeptTenant tenant = some_tenant();
  ClientConnections clients;
  EXPECT_TRUE(text.update(tenant, {}, clients));
  EXPECT_EQ(text.update(tenant, {}, clients), std::nullopt);
  ++tenant.pair.epoch;
  EXPECT_TRUE(text.update(tenant, {}, clients));
  EXPECT_EQ(text.update(tenant, {}, clients), std::nullopt);
  for (std::size_t count = 1; count <= 3; ++count) {
    const auto more = decode_tenant(text.update(tenant, some_memory(count), clients).value_or(""));
    ASSERT_TRUE(more) << more.error().message;
    EXPECT_EQ(more->allocations.size(), count);
    EXPECT_EQ(more->allocations.back().name, "weights-" + std::to_string(count - 1));
  }
  EXPECT_EQ(text.update(tenant, some_memory(3), clients), std::nullopt);
  clients.restore(1, {}, {});
  EXPECT_TRUE(text.update(tenant, some_memory(3), clients));
}

/// The tenant has as many of everything as there can be, with the longest names.
TEST(KeptState, TheLargestTenantFits) {
  const std::string longest(abi::name_bytes_max, 'n');
  KeptTenant tenant = some_tenant();
  tenant.name = tenant.active.domain = tenant.standby.domain = longest;
  hold::Traces traces{"4096:8192", {}, {}};
  traces.marks.resize(256, ~std::uint64_t{0});
  traces.others.resize(256, {4194304, "18446744073709551615", std::string(15, '\xff'), false});
  tenant.processes.assign(3, {4194304, longest, true, traces});
  std::vector<vault::Entry> entries = some_memory(vault::Vault::entries_max);
  for (vault::Entry& each : entries) {
    each.name = longest;
    each.address = each.size_bytes = std::uint64_t{1} << 57;
  }
  ClientConnections clients;
  std::map<std::uint64_t, os::Fd> open;
  for (std::uint64_t i = 0; i < ClientConnections::most; ++i) open.emplace(~i, os::Fd());
  clients.restore(~std::uint64_t{0}, {}, std::move(open));
  KeptDocument document = std::move(KeptDocument::create().value());
  KeptText text;
  ASSERT_TRUE(document.write(text.update(tenant, entries, clients).value_or("")));
  const auto read = decode_tenant(document.read());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->allocations.size(), vault::Vault::entries_max);
  EXPECT_EQ(read->connections.size(), ClientConnections::most);
}

TEST(KeptState, NonsenseAndOtherVersionsAreRefused) {
  EXPECT_FALSE(decode_tenant(""));
  EXPECT_FALSE(decode_tenant("[]"));
  EXPECT_FALSE(decode_tenant(R"({"version":2,"name":"llm"})"));
  EXPECT_FALSE(decode_common(R"({"version":2,"servers":[{}]})"));
  EXPECT_THAT(decode_common(R"({"version":9,"servers":[]})").error().message,
              testing::HasSubstr("version 9"));
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
