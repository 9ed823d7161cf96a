// SPDX-License-Identifier: Apache-2.0
#include "watch/exit_detector.h"

#include "watch/detector_test_support.h"

namespace firebreak::watch {
namespace {

constexpr pid_t target_pid = 4711;

class ExitDetectorTest : public DetectorTest {
 protected:
  ExitDetectorTest() { kernel_.add_process(target_pid); }

  ExitDetector detector(Parentage parentage = Parentage::OurChild) {
    const Target target{.pid = target_pid, .gpu = 1, .domain = "a", .tenant = "decode"};
    return ExitDetector(*loop_, kernel_, clock_, target, parentage, note_fault(),
                        [this](const ProcessExit& exit) {
                          faults_before_exit_ = faults_.size();
                          exits_.push_back(exit);
                        });
  }

  std::vector<ProcessExit> exits_;
  std::size_t faults_before_exit_ = 0;
};

TEST_F(ExitDetectorTest, AnUnexpectedEndIsATerminationFault) {
  ExitDetector watcher = detector();
  ASSERT_TRUE(watcher.start());
  kernel_.exit_process(target_pid, {0, 9});
  ASSERT_TRUE(run_until([&] { return exits_.size() == 1; }));
  EXPECT_EQ(faults_before_exit_, 1u);
  EXPECT_EQ(faults_[0].fault_class, fault::FaultClass::Termination);
  EXPECT_EQ(faults_[0].kind, "killed by signal 9");
  EXPECT_EQ(faults_[0].tenant, "decode");
  EXPECT_EQ(faults_[0].domain, "a");
  EXPECT_EQ(faults_[0].pid, target_pid);
  EXPECT_EQ(faults_[0].gpu, 1u);
  EXPECT_EQ(faults_[0].source, fault::FaultSource::ProcessExit);
  ASSERT_TRUE(exits_[0].status);
  EXPECT_EQ(exits_[0].status->signal, 9);
  EXPECT_FALSE(exits_[0].expected);
}

TEST_F(ExitDetectorTest, AnExpectedEndIsReportedButIsNoFault) {
  ExitDetector watcher = detector();
  ASSERT_TRUE(watcher.start());
  watcher.expect_exit();
  kernel_.exit_process(target_pid, {3, 0});
  ASSERT_TRUE(run_until([&] { return exits_.size() == 1; }));
  EXPECT_TRUE(faults_.empty());
  EXPECT_TRUE(exits_[0].expected);
  EXPECT_EQ(exits_[0].status->exit_code, 3);
}

TEST_F(ExitDetectorTest, NamesTheExitStatus) {
  ExitDetector watcher = detector();
  ASSERT_TRUE(watcher.start());
  kernel_.exit_process(target_pid, {3, 0});
  ASSERT_TRUE(run_until([&] { return exits_.size() == 1; }));
  EXPECT_EQ(faults_[0].kind, "exited with status 3");
}

TEST_F(ExitDetectorTest, AStrangerIsNotReaped) {
  ExitDetector watcher = detector(Parentage::Stranger);
  ASSERT_TRUE(watcher.start());
  kernel_.exit_process(target_pid, {0, 9});
  ASSERT_TRUE(run_until([&] { return exits_.size() == 1; }));
  EXPECT_FALSE(exits_[0].status);
  EXPECT_EQ(faults_[0].kind, "process ended");
  EXPECT_TRUE(kernel_.try_wait(target_pid).value());
}

TEST_F(ExitDetectorTest, ReportsOnce) {
  ExitDetector watcher = detector(Parentage::Stranger);
  ASSERT_TRUE(watcher.start());
  kernel_.exit_process(target_pid, {0, 9});
  ASSERT_TRUE(run_until([&] { return exits_.size() == 1; }));
  settle();
  EXPECT_EQ(exits_.size(), 1u);
}

TEST_F(ExitDetectorTest, AProcessThatIsNotThereIsAnErrorAtOnce) {
  ExitDetector watcher(*loop_, kernel_, clock_, Target{.pid = 1, .gpu = 0, .domain = {}, .tenant = {}},
                       Parentage::Stranger, note_fault(), {});
  const Status started = watcher.start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::NotFound);
}

TEST_F(ExitDetectorTest, AProcessThatEndedBeforeTheStartIsStillReported) {
  kernel_.exit_process(target_pid, {0, 11});
  ExitDetector watcher = detector();
  ASSERT_TRUE(watcher.start());
  EXPECT_TRUE(run_until([&] { return exits_.size() == 1; }));
}

}  // namespace
}  // namespace firebreak::watch
