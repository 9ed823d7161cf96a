// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "characterize/example_results.h"
#include "characterize/result.h"
#include "ground/os/file.h"

namespace firebreak::characterize {
namespace {

using testing::HasSubstr;

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const auto at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), with);
}

/// A run in which nothing has its default, and one in which everything that may be missing is.
Results full_and_empty() {
  Results results = example::results({"a", "b"}, 1);
  results.seed = 7;
  results.softgpu_speed = 4;
  results.expected[0].measured = false;
  auto& full = results.runs[0];
  full.participants["faulter"].end = "signal 9";
  full.participants["faulter"].end_ms = 2.5;
  full.attribution = {Verdict::Wrong, "co_client", "probable", {"one", "two"}, 2};
  full.restart.last_error = "busy";
  full.memory_left_bytes = -4096;
  full.notes = {"no NVML"};
  full.mismatches = {"something"};
  auto& empty = results.runs[1];
  empty = {};
  empty.kind = "b";
  empty.refused = "not on this device";
  return results;
}

TEST(ResultJson, ComesBackAsItWent) {
  const std::string text = to_json(full_and_empty());
  const auto parsed = parse_results(text);
  ASSERT_TRUE(parsed.has_value()) << to_string(parsed.error());
  EXPECT_EQ(to_json(*parsed), text);
  const auto& full = parsed->runs.at(0);
  EXPECT_EQ(full.participants.size(), 4U);
  EXPECT_EQ(full.of(Role::Faulter).end_ms, 2.5);
  EXPECT_EQ(full.of(Role::Outside).longest_stall->length_ms(), 6);
  EXPECT_EQ(full.signals.at(1).xid, 31);
  EXPECT_EQ(full.attribution.verdict, Verdict::Wrong);
  EXPECT_EQ(full.memory_left_bytes, -4096);
  const auto& empty = parsed->runs.at(1);
  EXPECT_FALSE(empty.restart.served_ms.has_value());
  EXPECT_FALSE(empty.memory_left_bytes.has_value());
  EXPECT_EQ(parsed->softgpu_speed, 4);
  EXPECT_FALSE(parsed->expected.at(0).measured);
}

// Files of before have names that did not say where a stray goes.
TEST(ResultJson, ReadsFormerNamesOfKinds) {
  Results results = example::results({"unmapped-store", "unmapped-load", "trap"}, 1);
  results.expected[0].first_seen_by = stray_source;  // the guard takes it, at 0xdead0000
  const auto back = parse_results(to_json(results));
  ASSERT_TRUE(back) << to_string(back.error());
  const std::vector<std::string> names{"unmapped-store-low", "unmapped-load-far", "trap"};
  for (std::size_t n = 0; n < names.size(); ++n) {
    EXPECT_EQ(back->expected[n].kind, names[n]);
    EXPECT_EQ(back->runs[n].kind, names[n]);
  }
}

TEST(ResultJson, RefusesAnotherVersion) {
  const auto parsed = parse_results(replaced(to_json(full_and_empty()), "\"format\": 1", "\"format\": 2"));
  ASSERT_FALSE(parsed.has_value());
  EXPECT_EQ(parsed.error().code, ErrorCode::Protocol);
  EXPECT_THAT(to_string(parsed.error()), HasSubstr("another version"));
}

TEST(ResultJson, RefusesWhatIsNoResult) {
  for (const char* text : {"", "[1, 2]", "{}", "{\"what\": \"something else\", \"format\": 1}",
                           "{\"what\": \"firebreak characterize\", \"format\": 1}"}) {
    const auto parsed = parse_results(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::Protocol) << text;
  }
}

TEST(ResultJson, RefusesAValueOfAnotherType) {
  EXPECT_FALSE(
      parse_results(replaced(to_json(full_and_empty()), "\"seed\": 7", "\"seed\": \"x\"")).has_value());
}

TEST(SameOrigin, HoldsForTheSameMachineOnAnotherDay) {
  Results now = full_and_empty();
  now.machine.date = "2027-01-01";
  now.repeat = 10;
  EXPECT_TRUE(same_origin(full_and_empty(), now).has_value());
}

TEST(SameOrigin, SaysWhatDiffers) {
  const auto said = [](void (*change)(Results&)) {
    Results now = full_and_empty();
    change(now);
    const Status same = same_origin(full_and_empty(), now);
    return same ? "nothing" : to_string(same.error());
  };
  EXPECT_THAT(said([](Results& now) { now.machine.gpu = "other"; }),
              HasSubstr("another GPU ('Some GPU', now 'other')"));
  EXPECT_THAT(said([](Results& now) { now.machine.driver = "570"; }), HasSubstr("another driver"));
  EXPECT_THAT(said([](Results& now) { now.machine.linux_release = "7"; }), HasSubstr("another Linux"));
  EXPECT_THAT(said([](Results& now) { now.machine.commit = "def"; }), HasSubstr("another commit"));
  EXPECT_THAT(said([](Results& now) { now.seed = 8; }), HasSubstr("another seed"));
  EXPECT_THAT(said([](Results& now) { now.softgpu_speed = 1; }), HasSubstr("another speed"));
}

TEST(ResultFile, ReplacesWhatWasThere) {
  const auto directory = std::move(os::TemporaryDirectory::create().value());
  const std::string path = directory.path() + "/results.json";
  ASSERT_TRUE(write_file(path, "a longer text that was there").has_value());
  ASSERT_TRUE(write_file(path, "new").has_value());
  EXPECT_EQ(read_file(path).value(), "new");
  EXPECT_FALSE(std::ifstream(path + ".new").good());
}

TEST(ResultFile, SaysWhichFileCannotBeReadOrWritten) {
  EXPECT_EQ(read_file("/nowhere/a").error().code, ErrorCode::NotFound);
  EXPECT_THAT(to_string(write_file("/nowhere/a", "x").error()), HasSubstr("/nowhere/a"));
}

}  // namespace
}  // namespace firebreak::characterize
