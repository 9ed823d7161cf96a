// SPDX-License-Identifier: Apache-2.0
#include "agent/loop/journal.h"

#include <fmt/format.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>

#include <memory>
#include <mutex>
#include <utility>

#include "ground/base/log.h"

namespace firebreak::agent {
namespace {

/// Fields of the line that this thread logs now.
thread_local const std::vector<JournalField>* fields_of_line = nullptr;

/// Returns the priority as syslog(3) counts.
int priority_of(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::critical:
      return 2;
    case spdlog::level::err:
      return 3;
    case spdlog::level::warn:
      return 4;
    case spdlog::level::info:
      return 6;
    default:
      return 7;
  }
}

class JournalSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit JournalSink(std::string program) : program_(std::move(program)) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    static const std::vector<JournalField> none;
    const auto entry = journal_entry(message.level, program_, {line.data(), line.size()},
                                     fields_of_line != nullptr ? *fields_of_line : none);
    std::vector<iovec> parts;
    for (const std::string& each : entry) parts.push_back({const_cast<char*>(each.data()), each.size()});
    (void)sd_journal_sendv(parts.data(), static_cast<int>(parts.size()));
  }
  void flush_() override {}

 private:
  std::string program_;
};

}  // namespace

std::vector<std::string> journal_entry(spdlog::level::level_enum level, std::string_view program,
                                       std::string_view line, std::span<const JournalField> fields) {
  while (line.ends_with('\n')) line.remove_suffix(1);
  std::vector<std::string> entry{fmt::format("PRIORITY={}", priority_of(level)),
                                 fmt::format("SYSLOG_IDENTIFIER={}", program),
                                 fmt::format("MESSAGE={}", line)};
  for (const JournalField& field : fields) {
    if (!field.value.empty()) entry.push_back(fmt::format("FIREBREAK_{}={}", field.name, field.value));
  }
  return entry;
}

bool is_journal(const char* stream, int descriptor) {
  struct stat seen {};
  if (stream == nullptr || ::fstat(descriptor, &seen) != 0) return false;
  return stream == fmt::format("{}:{}", seen.st_dev, seen.st_ino);
}

void log_to_journal(const std::string& program) {
  if (!is_journal(std::getenv("JOURNAL_STREAM"), 2)) return;
  auto sink = std::make_shared<JournalSink>(program);
  sink->set_formatter(printable_lines("%*"));
  spdlog::default_logger()->sinks() = {std::move(sink)};
}

void log_with(spdlog::level::level_enum level, const std::vector<JournalField>& fields,
              const std::string& line) {
  fields_of_line = &fields;
  spdlog::log(level, "{}", line);
  fields_of_line = nullptr;
}

}  // namespace firebreak::agent
