// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/line_tail.h"

#include <gmock/gmock.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "ground/os/file.h"
#include "ground/os/logs.h"
#include "ground/os/real_kernel.h"
#include "tests/doubles/watch/detector_test_support.h"

namespace firebreak::watch {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class LineTailTest : public DetectorTest {
 protected:
  std::string path() const { return directory_.path() + "/log"; }
  void append(const std::string& text) const { std::ofstream(path(), std::ios::app) << text; }
  bool run_until_lines(std::size_t count) {
    return run_until([&] { return lines_.size() >= count; });
  }

  os::TemporaryDirectory directory_ = os::TemporaryDirectory::create().value();
  /// Numbered lines of 32 bytes.
  static std::string many_lines(std::size_t bytes) {
    std::string text;
    for (std::size_t number = 0; text.size() < bytes; ++number) {
      const std::string digits = std::to_string(number);
      text += digits + std::string(31 - digits.size(), '.') + '\n';
    }
    return text;
  }
  /// Expects lines that follow each other.
  void expect_lines_from(std::size_t first) {
    for (std::size_t i = 0; i < lines_.size(); ++i)
      ASSERT_EQ(lines_[i].substr(0, lines_[i].find('.')), std::to_string(first + i));
  }

  os::RealKernel real_;
  std::vector<std::string> lines_;
  std::vector<std::uint64_t> skipped_;
  LineTail tail_{*loop_, real_, [this](std::string_view line) { lines_.emplace_back(line); },
                 [this](std::uint64_t bytes) { skipped_.push_back(bytes); }};
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

TEST_F(LineTailTest, ALogThatIsBoundedWhileItIsWrittenLosesAndRepeatsNothing) {
  constexpr std::size_t count = 2000, ahead_max = 20;
  const os::LogLimits limits{100 * 32, 2};  // a hundred lines, of which 25 stay
  append("old\n");
  ASSERT_TRUE(tail_.follow_name(directory_.path(), "log"));
  std::atomic<std::size_t> seen = 0;
  std::thread writer([&] {
    std::ofstream log(path(), std::ios::app);
    for (std::size_t number = 0; number < count; ++number) {
      while (number >= seen + ahead_max) std::this_thread::yield();
      const std::string digits = std::to_string(number);
      log << digits << std::string(31 - digits.size(), '.') << std::endl;
    }
  });
  int rotations = 0;
  EXPECT_TRUE(run_until([&] {
    rotations += os::rotate_in_place(path(), limits).value() ? 1 : 0;
    seen = lines_.size();
    return seen >= count;
  }));
  seen = count;
  writer.join();
  settle();
  EXPECT_GT(rotations, 10);
  ASSERT_EQ(lines_.size(), count);
  for (std::size_t number = 0; number < count; ++number) {
    EXPECT_EQ(lines_[number].substr(0, lines_[number].find('.')), std::to_string(number));
  }
}

TEST_F(LineTailTest, OneTurnOfTheLoopReadsAPart) {
  constexpr std::size_t parts = 10;
  append("old\n");
  ASSERT_TRUE(tail_.follow_file(path()));
  append(many_lines(parts * LineTail::most_at_once));
  std::size_t turns = 0;
  std::size_t most = 0;
  while (lines_.size() < parts * LineTail::most_at_once / 32) {
    const std::size_t before = lines_.size();
    loop_->run_once(Milliseconds(1000));
    most = std::max(most, lines_.size() - before);
    ++turns;
  }
  EXPECT_GE(turns, parts);
  EXPECT_LE(most, LineTail::most_at_once / 32);
  expect_lines_from(0);
  EXPECT_THAT(skipped_, IsEmpty());
}

TEST_F(LineTailTest, WhatIsFarBehindIsPassedOverAndItsEndIsRead) {
  constexpr std::uint64_t end = 200 * gib;
  append("old\n");
  ASSERT_TRUE(tail_.follow_file(path()));
  std::filesystem::resize_file(path(), end);
  append("\nlast\n");
  ASSERT_TRUE(run_until_lines(1));
  append("next\n");
  ASSERT_TRUE(run_until_lines(2));
  EXPECT_THAT(lines_, ElementsAre("last", "next")) << "and no half a line";
  EXPECT_THAT(skipped_, ElementsAre(end + 6 - LineTail::last_part - 4));
}

TEST_F(LineTailTest, WhatIsReadAtOnceIsTheLastPartOfWhatIsThere) {
  constexpr std::size_t bytes = 3 * LineTail::last_part;
  append("old\n");
  ASSERT_TRUE(tail_.follow_file(path()));
  append(many_lines(bytes));
  tail_.read_now();
  ASSERT_EQ(lines_.size(), LineTail::last_part / 32 - 1) << "but for the one that it may begin in";
  expect_lines_from((bytes - LineTail::last_part) / 32 + 1);
  EXPECT_THAT(skipped_, ElementsAre(bytes - LineTail::last_part));
}

TEST_F(LineTailTest, ALongFileThatIsReplacedIsReadToItsEndFirst) {
  constexpr std::size_t bytes = 4 * LineTail::most_at_once;
  ASSERT_TRUE(tail_.follow_name(directory_.path(), "log"));
  append(many_lines(bytes));
  loop_->run_once(Milliseconds(1000));
  std::filesystem::rename(path(), path() + ".1");
  append("of the next\n");
  ASSERT_TRUE(run_until_lines(bytes / 32 + 1));
  EXPECT_EQ(lines_.back(), "of the next");
  lines_.pop_back();
  expect_lines_from(0);
}

TEST_F(LineTailTest, ALogThatIsMovedAwayIsReadToItsEndAndTheNextFromItsBeginning) {
  append("old\n");
  ASSERT_TRUE(tail_.follow_name(directory_.path(), "log"));
  append("last\n");
  ASSERT_TRUE(os::rotate_away(path(), {}));
  append("first\n");
  ASSERT_TRUE(run_until_lines(2));
  settle();
  EXPECT_THAT(lines_, ElementsAre("last", "first"));
}

}  // namespace
}  // namespace firebreak::watch
