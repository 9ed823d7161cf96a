// SPDX-License-Identifier: Apache-2.0
#include "ground/base/text.h"

#include <gtest/gtest.h>

namespace firebreak {
namespace {

// The expected values are the reference vectors of FNV-1a.
TEST(Text, HasTheSameHashEverywhere) {
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325U);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cU);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8U);
}

TEST(Text, IsPrintableAsciiInItsRoom) {
  EXPECT_EQ(printable("a ~\x1b[2J\n\x7f\xc3\xa9"), "a ~?[2J????");
  EXPECT_EQ(printable("abcdef", 3), "abc");
  EXPECT_EQ(printable("ab", 3), "ab");
}

TEST(Text, IsTrimmedAtBothEnds) {
  EXPECT_EQ(trimmed(" \t a b\r\n"), "a b");
  EXPECT_EQ(trimmed("\n \t"), "");
  EXPECT_EQ(trimmed(""), "");
  EXPECT_EQ(trimmed(" a\n ", " "), "a\n");
}

}  // namespace
}  // namespace firebreak
