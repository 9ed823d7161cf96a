// SPDX-License-Identifier: Apache-2.0
/// Tests with documents that agents of other versions kept, as the bytes that they left: an older one's is
/// read, a newer one's is known to be that, and stays as it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "agent/tenants/kept_state.h"

namespace firebreak::agent {
namespace {

using testing::HasSubstr;

constexpr std::string_view magic_of_today = "FFBKEPT2";
constexpr std::string_view magic_of_tomorrow = "FFBKEPT3";
/// Offset of the text in the first of the two places; and the size of a file.
constexpr std::size_t text_at = 32;
constexpr std::size_t file_bytes = 8 + 2 * (24 + KeptDocument::bytes_max);

/// Document of a tenant, by an agent of commit 974391c.
constexpr std::string_view tenant_by_the_last_version =
    R"({"active":{"attempt":"first","done":7,"domain":"a","image":"4096:8192","memory_mib":1024,"pid":4)"
    R"(1,"sm_percent":25,"start_time":"1234567"},"connections":[7],"ended_by_us":true,"epoch":7,"last_c)"
    R"(onnection":9,"name":"llm","old_active":{"attempt":"","done":0,"domain":"b","image":"","memory_mi)"
    R"(b":0,"pid":40,"sm_percent":0,"start_time":"1234000"},"phase":"promoting","processes":[{"domain":)"
    R"("b","has_left":true,"image":"4096:8191","marks":[2305843009213693952,7],"others":[{"is_fork":fal)"
    R"(se,"name":"sleep","pid":38,"start_time":"1233000"}],"pid":39}],"standby":{"attempt":"","done":0,)"
    R"("domain":"","image":"","memory_mib":0,"pid":0,"sm_percent":0,"start_time":""},"standby_state":"j)"
    R"(oined","strays":"report","token":"0123","version":2,"allocations":[{"address":87960930222080,"me)"
    R"(mory":"weights","name":"weights-0","size_bytes":4096}]})";
constexpr std::uint64_t checksum_by_the_last_version = 0xba854dc3255f72d4;
/// Document by an agent of before 0.7, which kept less.
constexpr std::string_view tenant_by_an_older_version =
    R"({"active":{"domain":"a","memory_mib":1024,"pid":41,"sm_percent":25,"start_time":"1234567"},"conn)"
    R"(ections":[7],"ended_by_us":true,"epoch":7,"last_connection":9,"name":"llm","old_active":{"domain)"
    R"(":"b","memory_mib":0,"pid":40,"sm_percent":0,"start_time":"1234000"},"phase":"promoting","standb)"
    R"(y":{"domain":"","memory_mib":0,"pid":0,"sm_percent":0,"start_time":""},"standby_state":"joined",)"
    R"("strays":"report","token":"0123","version":2,"allocations":[{"address":87960930222080,"memory":")"
    R"(weights","name":"weights-0","size_bytes":4096}]})";
constexpr std::uint64_t checksum_by_an_older_version = 0xcf72ed1364c9e501;
/// Document that is no tenant's, by an agent that is still to come.
constexpr std::string_view common_by_the_next_version =
    R"({"placements":[],"servers":[],"version":3,"what_nobody_knows":[1]})";
constexpr std::uint64_t checksum_by_the_next_version = 0x55fe7d454ae4e3fd;

os::Fd file_of(std::string_view magic, std::string_view text, std::uint64_t checksum) {
  os::Fd file = std::move(os::create_memory_file("kept", file_bytes).value());
  const os::Mapping mapping =
      std::move(os::Mapping::of_file(file.get(), file_bytes, os::Protection::ReadWrite).value());
  std::byte* const bytes = mapping.bytes().data();
  const std::uint64_t head[] = {1, text.size(), checksum};
  std::memcpy(bytes, magic.data(), magic.size());
  std::memcpy(bytes + 8, head, sizeof(head));
  std::memcpy(bytes + text_at, text.data(), text.size());
  return file;
}

Status check(const std::string& name, os::Fd file) {
  std::map<std::string, os::Fd> kept;
  kept.emplace(name, std::move(file));
  return check_versions(kept);
}

TEST(KeptVersions, WhatTheLastVersionKeptIsRead) {
  os::Fd file = file_of(magic_of_today, tenant_by_the_last_version, checksum_by_the_last_version);
  const auto document = KeptDocument::open(std::move(file));
  ASSERT_TRUE(document) << document.error().message;
  const auto tenant = decode_tenant(document->read());
  ASSERT_TRUE(tenant) << tenant.error().message;
  EXPECT_EQ(tenant->name, "llm");
  EXPECT_EQ(tenant->pair, (pair::State{pair::Phase::Promoting, pair::Standby::Joined, 7}));
  EXPECT_EQ(tenant->active.attempt, "first");
  EXPECT_EQ(tenant->active.done, 7u);
  EXPECT_EQ(tenant->active.limits.memory_mib, 1024u);
  EXPECT_EQ(tenant->old_active.pid, 40);
  ASSERT_EQ(tenant->processes.size(), 1u);
  EXPECT_EQ(tenant->processes[0].traces.others[0].name, "sleep");
  ASSERT_EQ(tenant->allocations.size(), 1u);
  EXPECT_EQ(tenant->allocations[0].address, 0x500000000000u);
  EXPECT_EQ(tenant->connections, std::vector<std::uint64_t>{7});
}

TEST(KeptVersions, WhatAnOlderVersionKeptIsReadAndTheRestIsAsIfItWereNot) {
  os::Fd file = file_of(magic_of_today, tenant_by_an_older_version, checksum_by_an_older_version);
  const auto document = KeptDocument::open(std::move(file));
  ASSERT_TRUE(document) << document.error().message;
  const auto tenant = decode_tenant(document->read());
  ASSERT_TRUE(tenant) << tenant.error().message;
  EXPECT_EQ(tenant->name, "llm");
  EXPECT_EQ(tenant->active.pid, 41);
  EXPECT_EQ(tenant->active.image, "");
  EXPECT_THAT(tenant->processes, testing::IsEmpty());
  EXPECT_EQ(tenant->allocations.size(), 1u);
}

TEST(KeptVersions, AreThoseOfThisAgentAndBefore) {
  EXPECT_TRUE(check_versions({}));
  EXPECT_TRUE(
      check("tenant/llm", file_of(magic_of_today, tenant_by_the_last_version, checksum_by_the_last_version)));
  EXPECT_TRUE(
      check("tenant/llm", file_of(magic_of_today, tenant_by_an_older_version, checksum_by_an_older_version)));
}

TEST(KeptVersions, ANewerOneIsToldAndWhatToDo) {
  const Status newer =
      check("document", file_of(magic_of_today, common_by_the_next_version, checksum_by_the_next_version));
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().code, ErrorCode::Unsupported);
  EXPECT_THAT(newer.error().message, HasSubstr("by a newer agent (version 3, this one knows 2 to 2)"));
  EXPECT_THAT(newer.error().hint, HasSubstr("install that agent again"));
  EXPECT_THAT(to_string(newer.error()), testing::Not(HasSubstr("\n")));
}

/// Its text may lie anywhere.
TEST(KeptVersions, ANewerFileIsToldByItsFirstBytes) {
  EXPECT_EQ(check("tenant/llm", file_of(magic_of_tomorrow, "", 0)).error().code, ErrorCode::Unsupported);
  os::Fd small = std::move(os::create_memory_file("kept", 4096).value());
  const os::Mapping mapping =
      std::move(os::Mapping::of_file(small.get(), 4096, os::Protection::ReadWrite).value());
  std::memcpy(mapping.bytes().data(), magic_of_tomorrow.data(), magic_of_tomorrow.size());
  EXPECT_EQ(check("document", std::move(small)).error().code, ErrorCode::Unsupported);
}

/// Torn documents count for nothing either, nor what is no document by its name.
TEST(KeptVersions, WhatIsNoneCountsForNothing) {
  EXPECT_TRUE(check("document", std::move(os::create_memory_file("other", 4096).value())));
  EXPECT_TRUE(check("document", std::move(os::create_memory_file("other", 1).value())));
  EXPECT_TRUE(check("document", file_of(magic_of_today, common_by_the_next_version, 1)));
  EXPECT_TRUE(check("page/llm", file_of(magic_of_tomorrow, "", 0)));
}

}  // namespace
}  // namespace firebreak::agent
