// SPDX-License-Identifier: Apache-2.0
// Kernels of files are launched one by one, and what cannot run is told.
#include "idempotency/corpus_launches.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

namespace firebreak::idempotency {
namespace {

class CorpusLaunches : public testing::Test {
 protected:
  CorpusLaunches() : path_(testing::TempDir() + "corpus_launches_test.ptx") {}
  ~CorpusLaunches() override { std::filesystem::remove(path_); }

  CorpusLaunchCounts check(const std::string& kernels, std::uint64_t every = 1) {
    std::FILE* const file = std::fopen(path_.c_str(), "we");
    std::fputs((".version 8.0\n.target sm_80\n.address_size 64\n" + kernels).c_str(), file);
    std::fclose(file);
    return check_corpus({{path_}, every, 5, 1});
  }

  static std::string kernel(const std::string& name, const std::string& body) {
    return ".visible .entry " + name +
           "(.param .u64 a, .param .u64 b)\n{\n  .reg .b32 %r<9>;\n  .reg .b64 %rd<9>;\n" + body +
           "  ret;\n}\n";
  }

  const std::string path_;
  const std::string copies_ =
      "  ld.param.u64 %rd1, [a];\n  ld.param.u64 %rd2, [b];\n  ld.global.u32 %r1, [%rd1];\n"
      "  st.global.u32 [%rd2], %r1;\n";
  const std::string unknown_ = "  unheard.of.global [%rd1];\n";
};

TEST_F(CorpusLaunches, RunWithoutTheOthersOfTheirFile) {
  const CorpusLaunchCounts counts =
      check(kernel("f", copies_) + kernel("g", unknown_) + kernel("h", copies_));
  EXPECT_EQ(counts.kernels, 3U);
  EXPECT_EQ(counts.launches, 10U);
  EXPECT_GT(counts.completed, 2U);
  EXPECT_LT(counts.completed, 10U) << "numbers are no pointers";
  EXPECT_EQ(counts.left_out.size(), 1U);
  EXPECT_EQ(counts.left_out.begin()->second, 1U);
  EXPECT_TRUE(counts.problems.empty());
}

TEST_F(CorpusLaunches, SoManyOfThemAlone) {
  EXPECT_EQ(check(kernel("f", copies_) + kernel("g", copies_) + kernel("h", copies_), 2).kernels, 2U);
}

}  // namespace
}  // namespace firebreak::idempotency
