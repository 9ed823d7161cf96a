// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/exit_detector.h"

#include "tests/doubles/watch/detector_test_support.h"

namespace firebreak::watch {
namespace {

constexpr pid_t target_pid = 4711;

class ExitDetectorTest : public DetectorTest {
 protected:
  ExitDetectorTest() {
    kernel_.add_process(target_pid);
    at_.is_expected_to_end = [this](pid_t pid) { return pid == expected_; };
    at_.on_exit = [this](const ProcessExit& exit, const std::optional<fault::Fault>& fault) {
      exits_.push_back(exit);
      if (fault) faults_.push_back(*fault);
    };
  }

  Status follow(Parentage parentage = Parentage::OurChild) {
    return detector_.follow({.pid = target_pid, .gpu = 1, .domain = "a", .tenant = "decode"}, parentage);
  }

  Workplace at_ = workplace();
  ExitDetector detector_{at_};
  pid_t expected_ = 0;
  std::vector<ProcessExit> exits_;
};

TEST_F(ExitDetectorTest, AnUnexpectedEndIsATerminationFault) {
  ASSERT_TRUE(follow());
  kernel_.exit_process(target_pid, {0, 9});
  ASSERT_TRUE(run_until([&] { return exits_.size() == 1; }));
  ASSERT_EQ(faults_.size(), 1u);
  EXPECT_EQ(faults_[0].fault_class, fault::FaultClass::Termination);
  EXPECT_EQ(faults_[0].kind, "killed by signal 9");
  EXPECT_EQ(faults_[0].tenant, "decode");
  EXPECT_EQ(faults_[0].domain, "a");
  EXPECT_EQ(faults_[0].pid, target_pid);
  EXPECT_EQ(faults_[0].gpu.number, 1u);
  EXPECT_EQ(faults_[0].source, fault::FaultSource::ProcessExit);
  ASSERT_TRUE(exits_[0].status);
  EXPECT_EQ(exits_[0].status->signal, 9);
  EXPECT_FALSE(exits_[0].expected);
}

TEST_F(ExitDetectorTest, AnExpectedEndIsReportedButIsNoFault) {
  ASSERT_TRUE(follow());
  expected_ = target_pid;
  kernel_.exit_process(target_pid, {3, 0});
  ASSERT_TRUE(run_until([&] { return exits_.size() == 1; }));
  EXPECT_TRUE(faults_.empty());
  EXPECT_TRUE(exits_[0].expected);
  EXPECT_EQ(exits_[0].status->exit_code, 3);
}

TEST_F(ExitDetectorTest, NamesTheExitStatus) {
  ASSERT_TRUE(follow());
  kernel_.exit_process(target_pid, {3, 0});
  ASSERT_TRUE(run_until([&] { return exits_.size() == 1; }));
  EXPECT_EQ(faults_[0].kind, "exited with status 3");
}

TEST_F(ExitDetectorTest, AStrangerIsNotReaped) {
  ASSERT_TRUE(follow(Parentage::Stranger));
  kernel_.exit_process(target_pid, {0, 9});
  ASSERT_TRUE(run_until([&] { return exits_.size() == 1; }));
  EXPECT_FALSE(exits_[0].status);
  EXPECT_EQ(faults_[0].kind, "process ended");
  EXPECT_TRUE(kernel_.try_wait(target_pid).value());
}

TEST_F(ExitDetectorTest, ReportsOnce) {
  ASSERT_TRUE(follow(Parentage::Stranger));
  kernel_.exit_process(target_pid, {0, 9});
  ASSERT_TRUE(run_until([&] { return exits_.size() == 1; }));
  settle();
  EXPECT_EQ(exits_.size(), 1u);
}

TEST_F(ExitDetectorTest, AProcessThatIsNotThereIsAnErrorAtOnce) {
  const Status started =
      detector_.follow({.pid = 1, .gpu = 0, .domain = {}, .tenant = {}}, Parentage::Stranger);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::NotFound);
}

TEST_F(ExitDetectorTest, AProcessThatEndedBeforeTheStartIsStillReported) {
  kernel_.exit_process(target_pid, {0, 11});
  ASSERT_TRUE(follow());
  EXPECT_TRUE(run_until([&] { return exits_.size() == 1; }));
}

TEST_F(ExitDetectorTest, WhoIsNotFollowedAnyMoreIsNotReported) {
  ASSERT_TRUE(follow());
  detector_.stop(target_pid);
  kernel_.exit_process(target_pid, {0, 9});
  settle();
  EXPECT_TRUE(exits_.empty());
}

TEST_F(ExitDetectorTest, WhoIsFollowedAgainIsReportedOnceAndAsTheLatter) {
  ASSERT_TRUE(follow(Parentage::Stranger));
  ASSERT_TRUE(
      detector_.follow({.pid = target_pid, .gpu = 0, .domain = "b", .tenant = {}}, Parentage::Stranger));
  kernel_.exit_process(target_pid, {0, 9});
  ASSERT_TRUE(run_until([&] { return !exits_.empty(); }));
  settle();
  EXPECT_EQ(exits_.size(), 1u);
  EXPECT_EQ(faults_[0].domain, "b");
}

}  // namespace
}  // namespace firebreak::watch
