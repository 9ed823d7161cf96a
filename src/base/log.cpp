// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>

namespace firebreak {

void set_up_logging(const std::string& program, const std::string& default_level) {
  auto logger = spdlog::stderr_color_mt(program);
  logger->set_pattern("%H:%M:%S.%f %^%l%$ %n[%P] %v");
  const char* wanted = std::getenv("FIREBREAK_LOG");
  logger->set_level(spdlog::level::from_str(wanted != nullptr ? wanted : default_level));
  spdlog::set_default_logger(std::move(logger));
}

}  // namespace firebreak
