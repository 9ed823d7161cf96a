// SPDX-License-Identifier: Apache-2.0
#include "ground/base/log.h"

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <string>

namespace firebreak {
namespace {

/// Words of tenants are in the log: whatever they hold, they are part of one line and move no cursor.
TEST(Log, ALineIsALineWhateverIsInIt) {
  const auto before = spdlog::default_logger();
  set_up_logging("log-test", "warn");
  testing::internal::CaptureStderr();
  spdlog::warn("tenant {} said {}", "llm",
               "\n12:00:00 error firebreakd \x1b[2J\x7f \xc2\x9b \xe2\x80\xae\tend");
  spdlog::default_logger()->flush();
  const std::string text = testing::internal::GetCapturedStderr();
  spdlog::set_default_logger(before);
  spdlog::drop("log-test");
  EXPECT_NE(text.find("tenant llm said \\x0a12:00:00 error firebreakd \\x1b[2J\\x7f \\xc2\\x9b "
                      "\\xe2\\x80\\xae\\x09end\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find('\n'), text.size() - 1);
}

}  // namespace
}  // namespace firebreak
