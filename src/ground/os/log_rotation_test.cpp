// SPDX-License-Identifier: Apache-2.0
#include "ground/os/logs.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "ground/os/file.h"

namespace firebreak::os {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// 32 bytes each with its line end, so that sizes are easy to reckon.
std::string line(int number) {
  std::string text = std::to_string(number);
  return text + std::string(31 - text.size(), '.') + "\n";
}

struct LogRotation : testing::Test {
  TemporaryDirectory directory = std::move(TemporaryDirectory::create().value());
  std::string path = directory.path() + "/server.log";
  std::ofstream writer{path, std::ios::app};

  void write(int from, int to) {
    for (int number = from; number < to; ++number) writer << line(number);
    writer.flush();
  }
  /// The numbers of the lines in a file, whatever hole it begins with.
  static std::vector<int> numbers(const std::string& file) {
    std::ifstream stream(file);
    std::stringstream all;
    all << stream.rdbuf();
    std::string text = all.str();
    text.erase(0, std::min(text.find_first_not_of('\0'), text.size()));
    std::vector<int> found;
    std::istringstream lines(text);
    for (std::string each; std::getline(lines, each);) found.push_back(std::stoi(each));
    return found;
  }
  static std::vector<int> range(int from, int to) {
    std::vector<int> all;
    for (int number = from; number < to; ++number) all.push_back(number);
    return all;
  }
  bool exists(const std::string& suffix) const {
    struct stat info {};
    return ::stat((path + suffix).c_str(), &info) == 0;
  }
};

TEST_F(LogRotation, LeavesALogWithinItsLimitAlone) {
  write(0, 8);
  EXPECT_FALSE(rotate_in_place(path, {8 * 32, 2}).value());
  EXPECT_FALSE(exists(".1"));
}

TEST_F(LogRotation, MovesWholeLinesAndKeepsTheYoungestQuarter) {
  write(0, 1000);
  // The quarter is two lines and a half: the third stays whole.
  EXPECT_TRUE(rotate_in_place(path, {10 * 32, 2}).value());
  EXPECT_EQ(numbers(path + ".1"), range(0, 997));
  EXPECT_EQ(numbers(path), range(997, 1000));
}

TEST_F(LogRotation, TheWriterGoesOnInTheSameFileAndTheNextRotationBeginsThere) {
  write(0, 1000);
  ASSERT_TRUE(rotate_in_place(path, {40 * 32, 2}).value());
  write(1000, 1100);
  ASSERT_TRUE(rotate_in_place(path, {40 * 32, 2}).value());
  EXPECT_EQ(numbers(path + ".2"), range(0, 990));
  EXPECT_EQ(numbers(path + ".1"), range(990, 1090));
  EXPECT_EQ(numbers(path), range(1090, 1100));
}

TEST_F(LogRotation, GivesTheBlocksBack) {
  write(0, 100'000);
  struct stat before {};
  ASSERT_EQ(::stat(path.c_str(), &before), 0);
  ASSERT_TRUE(rotate_in_place(path, {64 * 1024, 1}).value());
  struct stat after {};
  ASSERT_EQ(::stat(path.c_str(), &after), 0);
  EXPECT_EQ(after.st_size, before.st_size);
  EXPECT_LT(after.st_blocks * 512, 128 * 1024);
}

TEST_F(LogRotation, TheOldestFileGoes) {
  for (int round = 0; round < 4; ++round) {
    write(round * 100, round * 100 + 100);
    ASSERT_TRUE(rotate_in_place(path, {32, 2}).value());
  }
  EXPECT_TRUE(exists(".2"));
  EXPECT_FALSE(exists(".3"));
}

TEST_F(LogRotation, WithoutOldFilesTheLinesGo) {
  write(0, 100);
  EXPECT_TRUE(rotate_in_place(path, {32, 0}).value());
  EXPECT_FALSE(exists(".1"));
  EXPECT_FALSE(exists(".new"));
}

TEST_F(LogRotation, ALogThatIsNotThereIsFine) {
  EXPECT_FALSE(rotate_in_place(directory.path() + "/none", {}).value());
  EXPECT_TRUE(rotate_away(directory.path() + "/none", {}));
}

TEST_F(LogRotation, AwayLeavesNoLogAndKeepsWhatItHeld) {
  write(0, 1000);
  ASSERT_TRUE(rotate_in_place(path, {40 * 32, 2}).value());
  EXPECT_TRUE(rotate_away(path, {40 * 32, 2}));
  EXPECT_FALSE(exists(""));
  EXPECT_EQ(numbers(path + ".1"), range(990, 1000));
  EXPECT_EQ(numbers(path + ".2"), range(0, 990));
}

TEST_F(LogRotation, TheTailIsTheEnd) {
  write(0, 10);
  EXPECT_EQ(read_tail(path, 32).value(), line(9));
  EXPECT_EQ(read_tail(path, 1'000'000).value().size(), 320U);
}

}  // namespace
}  // namespace firebreak::os
