// SPDX-License-Identifier: Apache-2.0
/// What the fuzzer was given and has found, read once each: without a fuzzer, and wherever tests run.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/fuzz/targets.h"

namespace firebreak::fuzz {
namespace {

class Corpus : public testing::TestWithParam<Target> {};

std::size_t read_all_in(const std::filesystem::path& folder, const Target& target) {
  std::size_t read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path().string());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    target.read(bytes);
    ++read;
  }
  return read;
}

TEST_P(Corpus, HoldsWhateverItIs) {
  const std::filesystem::path root = FIREBREAK_SOURCE_DIR;
  const Target& target = GetParam();
  if (!target.is_possible()) GTEST_SKIP() << "it cannot be read here: another user, or another sanitizer";
  EXPECT_GT(read_all_in(root / "tests/fuzz/corpus" / target.name, target), 0u);
  if (!target.samples.empty()) {
    EXPECT_GT(read_all_in(root / target.samples, target), 0u);
  }
  target.read("");
}

INSTANTIATE_TEST_SUITE_P(Of, Corpus, testing::ValuesIn(targets().begin(), targets().end()),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(CorpusDeathTest, WhatDoesNotHoldEndsTheProcess) {
  EXPECT_DEATH(require(false, "that pigs fly"), "does not hold: that pigs fly");
}

}  // namespace
}  // namespace firebreak::fuzz
