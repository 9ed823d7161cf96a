// SPDX-License-Identifier: Apache-2.0
/// The agent's log in systemd's journal, with priorities and fields: `journalctl -p warning -u firebreakd`
/// shows what somebody has to look at, `journalctl FIREBREAK_TENANT=llm` what concerns one tenant. Where
/// standard error is something else, lines alone go there.
#pragma once

#include <spdlog/common.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace firebreak::agent {

struct JournalField {
  std::string_view name;  ///< without FIREBREAK_ in front: "TENANT"
  std::string value;      ///< empty: it is left out
};

/// "NAME=VALUE", as the journal takes it. What a tenant has written stays one value of one field.
std::vector<std::string> journal_entry(spdlog::level::level_enum level, std::string_view program,
                                       std::string_view line, std::span<const JournalField> fields);

/// True when standard error is the journal, by what systemd says in `stream` (JOURNAL_STREAM: device and
/// inode).
bool is_journal(const char* stream, int descriptor);

/// Logs to the journal from now on. Does nothing where standard error is not the journal.
void log_to_journal(const std::string& program);

/// A line, with fields where it goes to the journal. Any thread.
void log_with(spdlog::level::level_enum level, const std::vector<JournalField>& fields,
              const std::string& line);

}  // namespace firebreak::agent
