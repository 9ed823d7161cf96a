// SPDX-License-Identifier: Apache-2.0
#include "agent/loop/journal.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "ground/os/fd.h"
#include "ground/os/file.h"

#include <fcntl.h>

namespace firebreak::agent {
namespace {

using testing::ElementsAre;

TEST(Journal, AnEntryHasAPriorityAndFields) {
  const std::vector<JournalField> fields{{"TENANT", "llm"}, {"DOMAIN", ""}, {"UID", "1000"}};
  EXPECT_THAT(journal_entry(spdlog::level::warn, "firebreakd", "refused: stop\n", fields),
              ElementsAre("PRIORITY=4", "SYSLOG_IDENTIFIER=firebreakd", "MESSAGE=refused: stop",
                          "FIREBREAK_TENANT=llm", "FIREBREAK_UID=1000"));
  EXPECT_EQ(journal_entry(spdlog::level::info, "p", "x", {}).front(), "PRIORITY=6");
  EXPECT_EQ(journal_entry(spdlog::level::err, "p", "x", {}).front(), "PRIORITY=3");
}

// The journal takes bytes with their length, so a line's end in a value begins no field.
TEST(Journal, WhatATenantHasWrittenIsOneValue) {
  const std::vector<JournalField> fields{{"TEXT", "harmless\nFIREBREAK_TENANT=victim"}};
  EXPECT_THAT(journal_entry(spdlog::level::info, "p", "x", fields).back(),
              testing::StartsWith("FIREBREAK_TEXT=harmless\n"));
  EXPECT_EQ(journal_entry(spdlog::level::info, "p", "x", fields).size(), 4U);
}

TEST(Journal, IsKnownByItsDeviceAndInode) {
  const os::Fd file(::open("/dev/null", O_RDWR | O_CLOEXEC));
  struct stat seen {};
  ASSERT_EQ(::fstat(file.get(), &seen), 0);
  EXPECT_TRUE(is_journal(fmt::format("{}:{}", seen.st_dev, seen.st_ino).c_str(), file.get()));
  EXPECT_FALSE(is_journal(fmt::format("{}:{}", seen.st_dev, seen.st_ino + 1).c_str(), file.get()));
  EXPECT_FALSE(is_journal("", file.get()));
  EXPECT_FALSE(is_journal(nullptr, file.get()));
}

}  // namespace
}  // namespace firebreak::agent
