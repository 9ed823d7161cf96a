// SPDX-License-Identifier: Apache-2.0
#include "ground/base/result.h"

#include <gtest/gtest.h>

namespace firebreak {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return fail(ErrorCode::InvalidArgument, "odd number", "give an even one");
  return value / 2;
}

Result<int> quarter(int value) {
  auto first = half(value);
  if (!first) return propagate(first, "quarter");
  return half(*first);
}

TEST(Result, CarriesTheValue) { EXPECT_EQ(quarter(12).value(), 3); }

TEST(Result, CarriesCodeMessageAndHintThroughCallers) {
  auto result = quarter(3);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::InvalidArgument);
  EXPECT_EQ(to_string(result.error()), "quarter: odd number (give an even one)");
}

TEST(Result, AnErrorWithoutAHintIsItsMessage) {
  EXPECT_EQ(to_string(Error{ErrorCode::Timeout, "late", ""}), "late");
}

}  // namespace
}  // namespace firebreak
