// SPDX-License-Identifier: Apache-2.0
#include "commands/exporter/exporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace firebreak::exporter {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ExporterTest : public testing::Test {
 protected:
  Result<std::string> answer = std::string(R"({"version": "1"})");
  std::vector<std::string> lines;
  Exporter exporter{"1",
                    {[this] { return answer; }, [this](const std::string& line) { lines.push_back(line); }}};

  bool is_up() { return exporter.text().find("\nfirebreak_up 1\n") != std::string::npos; }
};

TEST_F(ExporterTest, SaysOnceThatThereIsNoAgentAndOnceThatThereIs) {
  EXPECT_TRUE(is_up());
  answer = fail(ErrorCode::NotFound, "no firebreak agent at X", "start it");
  EXPECT_FALSE(is_up());
  EXPECT_FALSE(is_up());
  answer = std::string(R"({"version": "1"})");
  EXPECT_TRUE(is_up());
  EXPECT_TRUE(is_up());
  EXPECT_THAT(lines, ElementsAre("the agent answers, version 1", HasSubstr("no firebreak agent at X"),
                                 "the agent answers, version 1"));
}

TEST_F(ExporterTest, AnAgentOfAnotherVersionIsALineAndNoReasonToStop) {
  answer = std::string(R"({"version": "2"})");
  EXPECT_TRUE(is_up());
  answer = std::string("{}");
  EXPECT_TRUE(is_up());
  EXPECT_THAT(lines,
              ElementsAre(HasSubstr("version 2, this exporter of 1"), HasSubstr("older than this exporter")));
}

}  // namespace
}  // namespace firebreak::exporter
