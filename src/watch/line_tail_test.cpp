// SPDX-License-Identifier: Apache-2.0
#include "watch/line_tail.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "os/real_kernel.h"
#include "os/temporary_directory.h"
#include "watch/detector_test_support.h"

namespace firebreak::watch {
namespace {

using testing::ElementsAre;

class LineTailTest : public DetectorTest {
 protected:
  std::string path() const { return directory_.path() + "/log"; }
  void append(const std::string& text) const { std::ofstream(path(), std::ios::app) << text; }
  bool run_until_lines(std::size_t count) {
    return run_until([&] { return lines_.size() >= count; });
  }

  os::TemporaryDirectory directory_ = os::TemporaryDirectory::create().value();
  os::RealKernel real_;
  std::vector<std::string> lines_;
  LineTail tail_{*loop_, real_, [this](std::string_view line) { lines_.emplace_back(line); }};
};

TEST_F(LineTailTest, AFileIsFollowedFromItsEnd) {
  append("old\nhalf ");
  ASSERT_TRUE(tail_.follow_file(path()));
  append("line\nnew\n");
  ASSERT_TRUE(run_until_lines(2));
  settle();
  EXPECT_THAT(lines_, ElementsAre("line", "new"));
}

TEST_F(LineTailTest, AFileIsFollowedUnderAnotherNameToo) {
  append("old\n");
  ASSERT_TRUE(tail_.follow_file(path()));
  std::ofstream writer(path(), std::ios::app);
  std::filesystem::rename(path(), path() + ".1");
  append("of another file\n");
  writer << "new\n" << std::flush;
  ASSERT_TRUE(run_until_lines(1));
  settle();
  EXPECT_THAT(lines_, ElementsAre("new"));
}

TEST_F(LineTailTest, AFileThatIsCutOffBeginsAnew) {
  append("a long old line\nhalf");
  ASSERT_TRUE(tail_.follow_file(path()));
  std::filesystem::resize_file(path(), 0);
  append("new\n");
  ASSERT_TRUE(run_until_lines(1));
  settle();
  EXPECT_THAT(lines_, ElementsAre("new"));
}

TEST_F(LineTailTest, WhatIsThereCanBeReadAtOnce) {
  append("old\n");
  ASSERT_TRUE(tail_.follow_file(path()));
  append("new\n");
  tail_.read_now();
  EXPECT_THAT(lines_, ElementsAre("new"));
}

TEST_F(LineTailTest, ANameIsFollowedFromFileToFile) {
  ASSERT_TRUE(tail_.follow_name(directory_.path(), "log"));
  append("first\n");
  ASSERT_TRUE(run_until_lines(1));
  std::filesystem::rename(path(), path() + ".1");
  append("second\n");
  ASSERT_TRUE(run_until_lines(2));
  EXPECT_THAT(lines_, ElementsAre("first", "second"));
}

TEST_F(LineTailTest, OnlyARegularFileIsAFile) {
  const Status followed = tail_.follow_file(directory_.path());
  ASSERT_FALSE(followed);
  EXPECT_EQ(followed.error().code, ErrorCode::Unsupported);
}

}  // namespace
}  // namespace firebreak::watch
