// SPDX-License-Identifier: Apache-2.0
#include "ground/base/log.h"

#include <fmt/format.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <iterator>
#include <memory>
#include <utility>

namespace firebreak {
namespace {

/// A line of the log is a line, and shows what it holds: words of tenants are in it. What is no printable
/// ASCII is escaped, since a terminal obeys controls of two bytes, too, and shows some letters in another
/// order.
class PrintableText final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& line) override {
    for (const char letter : message.payload) {
      const auto code = static_cast<unsigned char>(letter);
      if (code >= ' ' && code <= '~')
        line.push_back(letter);
      else
        fmt::format_to(std::back_inserter(line), "\\x{:02x}", code);
    }
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<PrintableText>(); }
};

}  // namespace

std::unique_ptr<spdlog::formatter> printable_lines(const std::string& pattern) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  formatter->add_flag<PrintableText>('*').set_pattern(pattern);
  return formatter;
}

void set_up_logging(const std::string& program, const std::string& default_level) {
  auto logger = spdlog::stderr_color_mt(program);
  logger->set_formatter(printable_lines("%Y-%m-%dT%H:%M:%S.%eZ %^%l%$ %n[%P] %*"));
  const char* wanted = std::getenv("FIREBREAK_LOG");
  logger->set_level(spdlog::level::from_str(wanted != nullptr ? wanted : default_level));
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace firebreak
