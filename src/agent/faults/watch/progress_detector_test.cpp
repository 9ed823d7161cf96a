// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/progress_detector.h"

#include "tests/doubles/watch/detector_test_support.h"

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
  const Workplace at = workplace();
  ProgressDetector detector(at);
  const auto read = [&]() -> std::optional<std::uint64_t> {
    ++readings;
    clock_.advance(Milliseconds(1));
    return 3;
  };
  const Target target{.pid = 7, .gpu = 1, .domain = "a", .tenant = "decode"};
  ASSERT_TRUE(detector.follow_progress(target, read, {.patience = Milliseconds(4), .readings = 4}));
  ASSERT_TRUE(run_until([&] { return faults_.size() == 1; }));
  EXPECT_GE(readings, 5);
  EXPECT_EQ(faults_[0].pid, 7);
  EXPECT_EQ(faults_[0].tenant, "decode");
  EXPECT_EQ(faults_[0].kind, "no progress for 4 ms");
  EXPECT_EQ(faults_[0].source, fault::FaultSource::Progress);
}

TEST_F(ProgressDetectorTest, NobodyReadsTheProgressOfOneThatIsNotFollowedAnyMore) {
  int readings = 0;
  const Workplace at = workplace();
  ProgressDetector detector(at);
  const auto read = [&]() -> std::optional<std::uint64_t> { return ++readings; };
  const Target target{.pid = 7, .gpu = 1, .domain = "a", .tenant = "decode"};
  const ProgressOptions often{.patience = Milliseconds(4), .readings = 4};
  ASSERT_TRUE(detector.follow_progress(target, read, often));
  detector.stop(7);
  EXPECT_FALSE(loop_->run_once(Milliseconds(20)));
  ASSERT_TRUE(detector.follow_progress(target, read, often));
  // The number is another process's.
  ASSERT_TRUE(detector.follow(target, Parentage::Stranger));
  EXPECT_FALSE(loop_->run_once(Milliseconds(20)));
  EXPECT_EQ(readings, 0);
}

}  // namespace
}  // namespace firebreak::watch
