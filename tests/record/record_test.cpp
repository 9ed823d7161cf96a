// SPDX-License-Identifier: Apache-2.0
/// What a program launched is written down, and decided as the kernels' labels say.
#include <gmock/gmock.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "ground/os/program.h"
#include "idempotency/recorded_launches.h"
#include "tests/softgpu_driver/machine_test.h"

namespace firebreak::idempotency {

bool operator==(const LaunchCount& a, const LaunchCount& b) {
  return a.launches == b.launches && a.distinct == b.distinct;
}
void PrintTo(const LaunchCount& count, std::ostream* out) {
  *out << count.launches << " launches, " << count.distinct << " of them distinct";
}

namespace {

using ::testing::Pair;
using ::testing::UnorderedElementsAre;

class RecordedProgram : public test::MachineTest {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "a sanitizer's runtime wants to be the first library";
#endif
  }

  // Its exit code.
  int run(const test::Environment& besides) {
    os::SpawnRequest request;
    request.command = {FIREBREAK_RECORDED_PROGRAM, FIREBREAK_ACCESS_TESTDATA};
    request.environment = environment();
    request.environment.insert(request.environment.end(), besides.begin(), besides.end());
    request.environment.emplace_back("LD_PRELOAD", FIREBREAK_GUARD_LIBRARY);
    const auto ran = os::run_program(kernel_, request, "", std::chrono::seconds(60));
    return ran && ran->status.signal == 0 ? ran->status.exit_code : -1;
  }
  std::string folder() const { return directory() + "/recorded"; }
};

void expect_known_answers(const RecordedLaunches& recorded) {
  EXPECT_EQ(recorded.all, (LaunchCount{35, 6}));
  EXPECT_EQ(recorded.unrecorded, 0U);
  EXPECT_EQ(recorded.unread_lines, 0U);
  EXPECT_TRUE(recorded.without_ptx.empty());
  // `gather` was launched in two ways with the same arguments.
  EXPECT_THAT(recorded.verdicts, UnorderedElementsAre(Pair("idempotent", LaunchCount{13, 2}),
                                                      Pair("not idempotent", LaunchCount{14, 3}),
                                                      Pair("unknown", LaunchCount{8, 1})));
  EXPECT_THAT(
      recorded.causes,
      UnorderedElementsAre(
          Pair("not idempotent, in place: st.global.u32 and ld.global.u32", LaunchCount{3, 1}),
          Pair("not idempotent, atomic: red.global.add.u32", LaunchCount{4, 1}),
          Pair("not idempotent, a store meets another load: st.global.u32 and ld.global.u32",
               LaunchCount{7, 1}),
          Pair("unknown, somewhere in one allocation: st.global.u32 and ld.global.u32", LaunchCount{8, 1})));
  EXPECT_EQ(recorded.times.decided.size(), 6U);
}

TEST_F(RecordedProgram, KnownKernelsHaveTheirAnswers) {
  ASSERT_EQ(run({{"FIREBREAK_RECORD_LAUNCHES", folder()}}), 0);
  const auto recorded = decide_recorded(folder());
  ASSERT_TRUE(recorded) << to_string(recorded.error());
  expect_known_answers(*recorded);
}

TEST_F(RecordedProgram, WithoutTheGuardToo) {
  ASSERT_EQ(run({{"FIREBREAK_RECORD_LAUNCHES", folder()}, {"FIREBREAK_GUARD", "0"}}), 0);
  const auto recorded = decide_recorded(folder());
  ASSERT_TRUE(recorded) << to_string(recorded.error());
  expect_known_answers(*recorded);
}

TEST_F(RecordedProgram, NothingIsWrittenUnlessItIsWanted) {
  ASSERT_EQ(run({}), 0);
  EXPECT_FALSE(decide_recorded(folder()));
  EXPECT_FALSE(std::filesystem::exists(folder()));
}

TEST_F(RecordedProgram, AFolderThatCannotBeMadeChangesNothing) {
  EXPECT_EQ(run({{"FIREBREAK_RECORD_LAUNCHES", "/proc/none"}}), 0);
}

TEST_F(RecordedProgram, WhatHasNoPtxIsCountedApart) {
  ASSERT_EQ(run({{"FIREBREAK_RECORD_LAUNCHES", folder()}}), 0);
  std::filesystem::remove_all(folder() + "/images");
  const auto recorded = decide_recorded(folder());
  ASSERT_TRUE(recorded) << to_string(recorded.error());
  EXPECT_TRUE(recorded->verdicts.empty());
  EXPECT_THAT(recorded->without_ptx,
              UnorderedElementsAre(Pair("code that is not known", LaunchCount{35, 6})));
}

TEST_F(RecordedProgram, PtxBesideMachineCodeIsAskedWhereThereIsNoOther) {
  ASSERT_EQ(run({{"FIREBREAK_RECORD_LAUNCHES", folder()}}), 0);
  const std::string images = folder() + "/images";
  std::vector<std::filesystem::path> all;
  for (const auto& each : std::filesystem::directory_iterator(images)) all.push_back(each.path());
  for (const auto& each : all)
    std::filesystem::rename(each, images + "/" + each.stem().string() + ".beside.ptx");
  const auto recorded = decide_recorded(folder());
  ASSERT_TRUE(recorded) << to_string(recorded.error());
  EXPECT_EQ(recorded->beside, (LaunchCount{35, 6}));
  expect_known_answers(*recorded);
}

// The real tracer, on the software GPU by its driver's functions.
TEST_F(RecordedProgram, PlayedAgainItsLaunchesDoWhatWasSaidOfThem) {
  ASSERT_EQ(run({{"FIREBREAK_RECORD_LAUNCHES", folder()}}), 0);
  os::SpawnRequest request;
  request.command = {FIREBREAK_IDEMPOTENCY, "--recorded", folder(), "--replay", "--records", "10000"};
  request.environment = environment();
  request.environment.emplace_back("LD_LIBRARY_PATH", FIREBREAK_SOFTGPU_FOLDER);
  const auto ran = os::run_program(kernel_, request, "", std::chrono::seconds(60));
  ASSERT_TRUE(ran);
  ASSERT_EQ(ran->status.exit_code, 0) << ran->output;
  std::map<std::string, int> seen;
  std::istringstream lines(ran->output);
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    if (!json.contains("kernel")) continue;
    EXPECT_EQ(json.value("problem", "none is said"), "") << line;
    EXPECT_EQ(json.value("redone", 0), json["verdict"] == "idempotent" ? 3 : 0) << line;
    ++seen[json["verdict"].get<std::string>() + (json["is_idempotent"] ? ", it is" : ", it is not")];
  }
  EXPECT_THAT(seen, UnorderedElementsAre(Pair("idempotent, it is", 2), Pair("not idempotent, it is not", 3),
                                         Pair("unknown, it is not", 1)));
}

}  // namespace
}  // namespace firebreak::idempotency
