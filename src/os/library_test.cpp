// SPDX-License-Identifier: Apache-2.0
#include "os/self.h"

#include <gmock/gmock.h>

#include <filesystem>

namespace firebreak::os {
namespace {

TEST(Library, SymbolOfALibraryIsCallable) {
  const auto symbol = load_symbol("libm.so.6", "floor");
  ASSERT_TRUE(symbol) << to_string(symbol.error());
  EXPECT_EQ(reinterpret_cast<double (*)(double)>(*symbol)(2.5), 2.0);
}

TEST(Library, ANeighbourLiesInTheSameFolder) {
  namespace fs = std::filesystem;
  const fs::path neighbour = fs::canonical(fs::path(beside_this_library("x")).parent_path());
  EXPECT_EQ(neighbour, fs::path(executable_path().value()).parent_path());
}

TEST(Library, WhatIsMissingIsNamed) {
  const auto library = load_symbol("libno-such-thing.so", "floor");
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code, ErrorCode::NotFound);
  EXPECT_THAT(library.error().message, ::testing::HasSubstr("libno-such-thing.so"));
  const auto symbol = load_symbol("libm.so.6", "no_such_symbol");
  ASSERT_FALSE(symbol);
  EXPECT_EQ(symbol.error().code, ErrorCode::NotFound);
  EXPECT_EQ(symbol.error().message, "libm.so.6 has no no_such_symbol");
}

}  // namespace
}  // namespace firebreak::os
