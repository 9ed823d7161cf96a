// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "workloads/common/digest.h"
#include "workloads/common/options.h"
#include "workloads/common/output_file.h"
#include "workloads/common/pacer.h"

namespace firebreak::workloads {
namespace {

std::string read(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::filesystem::path fresh_folder(const std::string& name) {
  const auto folder = std::filesystem::path(testing::TempDir()) / ("firebreak-workloads-" + name);
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

TEST(Digest, KnownValues) {
  EXPECT_EQ(hexadecimal(digest("")), "cbf29ce484222325");
  EXPECT_EQ(hexadecimal(digest("a")), "af63dc4c8601ec8c");
}

TEST(OutputFile, ReplacesAFileAndLeavesNothingElse) {
  const auto folder = fresh_folder("replace");
  ASSERT_TRUE(write_whole_file(folder / "out", "first"));
  ASSERT_TRUE(write_whole_file(folder / "out", std::string_view("se\0cond", 7)));
  EXPECT_EQ(read(folder / "out"), std::string("se\0cond", 7));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
}

TEST(OutputFile, AFailureSaysWhichFileAndLeavesNothing) {
  const auto folder = fresh_folder("fail");
  const Status missing = write_whole_file(folder / "none" / "out", "text");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, testing::HasSubstr("none"));
  std::filesystem::create_directories(folder / "taken" / "below");
  EXPECT_FALSE(write_whole_file(folder / "taken", "text"));
  EXPECT_FALSE(std::filesystem::exists(folder / "taken.part"));
}

TEST(Pacer, ShortStepsAreStretchedAndLongOnesAreNotMadeUpFor) {
  Pacer pacer(Milliseconds(10));
  const auto at = [](int ms) { return Monotonic(Milliseconds(ms)); };
  EXPECT_EQ(pacer.next_begin(at(100)), at(100));
  EXPECT_EQ(pacer.next_begin(at(103)), at(110));
  EXPECT_EQ(pacer.next_begin(at(150)), at(150));
  EXPECT_EQ(pacer.next_begin(at(151)), at(160));
}

TEST(Pacer, WithoutAMinimumNothingWaits) {
  Pacer pacer(Milliseconds(0));
  EXPECT_EQ(pacer.next_begin(Monotonic(Milliseconds(5))), Monotonic(Milliseconds(5)));
  EXPECT_EQ(pacer.next_begin(Monotonic(Milliseconds(6))), Monotonic(Milliseconds(6)));
}

std::variant<Options, ExitStatus> parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "program");
  return parse_options("A program.", static_cast<int>(arguments.size()), arguments.data());
}

TEST(ParseOptions, EveryOption) {
  const auto parsed =
      parse({"--size", "medium", "--steps", "12", "--seed", "9", "--output", "file", "--pace-ms", "30",
             "--slow-until", "told", "--standby-sms", "3", "--standalone"});
  ASSERT_TRUE(std::holds_alternative<Options>(parsed));
  const Options& options = std::get<Options>(parsed);
  EXPECT_EQ(options.size, Size::Medium);
  EXPECT_EQ(options.steps, 12u);
  EXPECT_EQ(options.seed, 9u);
  EXPECT_EQ(options.output, "file");
  EXPECT_EQ(options.pace_ms, 30u);
  EXPECT_EQ(options.slow_until, "told");
  EXPECT_EQ(options.standby_sms, 3u);
  EXPECT_TRUE(options.standalone);
}

TEST(ParseOptions, NonsenseIsRefusedWithAStatus) {
  testing::internal::CaptureStderr();
  for (const std::vector<const char*>& arguments : {std::vector<const char*>{"--size", "huge"},
                                                    {"--steps", "0"},
                                                    {"--steps", "-1"},
                                                    {"--what"},
                                                    {"word"}}) {
    const auto parsed = parse(arguments);
    ASSERT_TRUE(std::holds_alternative<ExitStatus>(parsed)) << arguments[0];
    EXPECT_NE(std::get<ExitStatus>(parsed).value, 0);
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("huge"));
}

}  // namespace
}  // namespace firebreak::workloads
