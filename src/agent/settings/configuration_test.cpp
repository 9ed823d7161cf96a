// SPDX-License-Identifier: Apache-2.0
#include "agent/settings/configuration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace firebreak::agent {
namespace {

using testing::ElementsAre;

TEST(Configuration, HasValuesAsACommandLineHasThem) {
  const auto options = parse_configuration(
      "# of ours\nlease-s = 120\nfence-wait-s = 0.25\nstrays = \"report\"\ngpu = [\"GPU-1\", \"GPU-2\"]\n",
      "f");
  ASSERT_TRUE(options);
  ASSERT_EQ(options->size(), 4u);
  EXPECT_EQ((*options)[0].key, "lease-s");
  EXPECT_THAT((*options)[0].values, ElementsAre("120"));
  EXPECT_EQ((*options)[0].line, 2u);
  EXPECT_THAT((*options)[1].values, ElementsAre("0.25"));
  EXPECT_THAT((*options)[2].values, ElementsAre("report"));
  EXPECT_THAT((*options)[3].values, ElementsAre("GPU-1", "GPU-2"));
  EXPECT_FALSE((*options)[3].is_switch);
}

TEST(Configuration, KnowsASwitchFromAWord) {
  const auto options = parse_configuration("spares = true\nsparse = false\nstrays = \"true\"\n", "f");
  ASSERT_TRUE(options);
  EXPECT_TRUE((*options)[0].is_switch);
  EXPECT_THAT((*options)[0].values, ElementsAre("true"));
  EXPECT_TRUE((*options)[1].is_switch);
  EXPECT_THAT((*options)[1].values, ElementsAre("false"));
  EXPECT_FALSE((*options)[2].is_switch);
}

TEST(Configuration, OfNothingIsNothing) {
  const auto options = parse_configuration("# nothing\n", "f");
  ASSERT_TRUE(options);
  EXPECT_TRUE(options->empty());
}

TEST(Configuration, SaysInOneLineWhereItIsWrong) {
  for (const char* text : {"ok = 1\nlease-s 120\n", "ok = 1\n[domains]\nlease-s = 1\n",
                           "ok = 1\ngpu = [[1]]\n", "ok = 1\nlease-s = 2026-11-26\n"}) {
    const auto options = parse_configuration(text, "/etc/f");
    ASSERT_FALSE(options) << text;
    EXPECT_EQ(options.error().message.find("/etc/f, line 2: "), 0u) << options.error().message;
    EXPECT_EQ(to_string(options.error()).find('\n'), std::string::npos) << to_string(options.error());
  }
}

}  // namespace
}  // namespace firebreak::agent
