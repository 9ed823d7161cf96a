// SPDX-License-Identifier: Apache-2.0
#include "watch/progress_detector.h"

#include "watch/detector_test_support.h"

namespace firebreak::watch {
namespace {

Monotonic at(int ms) { return Monotonic(Milliseconds(ms)); }

TEST(ProgressJudge, AStandstillWithWorkInFlightIsAHangOnce) {
  ProgressJudge judge(Milliseconds(100));
  EXPECT_FALSE(judge.hangs(at(0), 5));
  EXPECT_FALSE(judge.hangs(at(99), 5));
  EXPECT_TRUE(judge.hangs(at(100), 5));
  EXPECT_FALSE(judge.hangs(at(300), 5));
}

TEST(ProgressJudge, ProgressOrNothingToDoIsNoHang) {
  ProgressJudge judge(Milliseconds(100));
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(judge.hangs(at(i * 90), i));
  EXPECT_FALSE(judge.hangs(at(1000), std::nullopt));
  EXPECT_FALSE(judge.hangs(at(2000), std::nullopt));
  EXPECT_FALSE(judge.hangs(at(3000), 9));
}

TEST(ProgressJudge, TheNextStandstillIsToldAgain) {
  ProgressJudge judge(Milliseconds(100));
  judge.hangs(at(0), 5);
  EXPECT_TRUE(judge.hangs(at(100), 5));
  EXPECT_FALSE(judge.hangs(at(150), 6));
  EXPECT_TRUE(judge.hangs(at(250), 6));
}

class ProgressDetectorTest : public DetectorTest {};

TEST_F(ProgressDetectorTest, ReportsAHangWithItsProcess) {
  int readings = 0;
  ProgressDetector detector(
      *loop_, clock_, {.pid = 7, .gpu = 1, .domain = "a", .tenant = "decode"},
      {.patience = Milliseconds(4), .readings = 4},
      [&]() -> std::optional<std::uint64_t> {
        ++readings;
        clock_.advance(Milliseconds(1));
        return 3;
      },
      note_fault());
  ASSERT_TRUE(detector.start());
  ASSERT_TRUE(run_until([&] { return faults_.size() == 1; }));
  EXPECT_GE(readings, 5);
  EXPECT_EQ(faults_[0].pid, 7);
  EXPECT_EQ(faults_[0].tenant, "decode");
  EXPECT_EQ(faults_[0].kind, "no progress for 4 ms");
  EXPECT_EQ(faults_[0].source, fault::FaultSource::Progress);
}

}  // namespace
}  // namespace firebreak::watch
