// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/mps_log_detector.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "ground/os/file.h"
#include "ground/os/real_kernel.h"
#include "tests/doubles/watch/detector_test_support.h"

namespace firebreak::watch {
namespace {

const std::string fault_line =
    "[2026-11-21 14:39:55.123 Server  4711] Client 815 encountered a fatal exception\n";

class MpsLogDetectorTest : public DetectorTest {
 protected:
  std::string path() const { return directory_.path() + "/server.log"; }
  void append(const std::string& text) const { std::ofstream(path(), std::ios::app) << text; }
  bool run_until_faults(std::size_t count) {
    return run_until([&] { return faults_.size() >= count; });
  }

  os::TemporaryDirectory directory_ = os::TemporaryDirectory::create().value();
  os::RealKernel real_;
  MpsLogDetector detector_{
      *loop_, real_, clock_, {.directory = directory_.path(), .domain = "a"}, note_fault()};
};

TEST_F(MpsLogDetectorTest, TellsOfAFaultInItsDomain) {
  append(fault_line);
  ASSERT_TRUE(detector_.start());
  append("[2026-11-21 14:39:55.123 Server  4711] New client 815 connected\n" + fault_line);
  ASSERT_TRUE(run_until_faults(1));
  settle();
  ASSERT_EQ(faults_.size(), 1u);
  EXPECT_EQ(faults_[0].domain, "a");
  EXPECT_EQ(faults_[0].pid, 815);
  EXPECT_EQ(faults_[0].source, fault::FaultSource::MpsLog);
}

TEST_F(MpsLogDetectorTest, AClientThatComesIsNoFaultAndIsTold) {
  std::vector<std::optional<pid_t>> arrivals;
  MpsLogDetector detector(*loop_, real_, clock_,
                          {.directory = directory_.path(),
                           .domain = "a",
                           .on_arrival = [&](std::optional<pid_t> pid) { arrivals.push_back(pid); }},
                          note_fault());
  ASSERT_TRUE(detector.start());
  append("[2026-11-21 15:21:18.122 Server  1729] Client {PID: 1727, Context ID: 1} connected\n");
  ASSERT_TRUE(run_until([&] { return arrivals.size() == 1; }));
  EXPECT_EQ(arrivals[0], 1727);
  EXPECT_TRUE(faults_.empty());
}

TEST_F(MpsLogDetectorTest, WaitsForTheLogToAppear) {
  ASSERT_TRUE(detector_.start());
  append(fault_line);
  EXPECT_TRUE(run_until_faults(1));
}

TEST_F(MpsLogDetectorTest, PutsALineTogether) {
  ASSERT_TRUE(detector_.start());
  append(fault_line.substr(0, 50));
  ASSERT_TRUE(loop_->run_once(Milliseconds(30'000)));
  EXPECT_TRUE(faults_.empty());
  append(fault_line.substr(50));
  EXPECT_TRUE(run_until_faults(1));
}

TEST_F(MpsLogDetectorTest, FollowsARotatedLog) {
  append(fault_line);
  ASSERT_TRUE(detector_.start());
  std::filesystem::rename(path(), path() + ".1");
  append(fault_line);
  ASSERT_TRUE(run_until_faults(1));
  append(fault_line);
  EXPECT_TRUE(run_until_faults(2));
}

TEST_F(MpsLogDetectorTest, FollowsATruncatedLog) {
  append(fault_line + fault_line);
  ASSERT_TRUE(detector_.start());
  std::filesystem::resize_file(path(), 0);
  append(fault_line);
  ASSERT_TRUE(run_until_faults(1));
  settle();
  EXPECT_EQ(faults_.size(), 1u);
}

TEST_F(MpsLogDetectorTest, WithoutTheDirectoryThereIsOneLine) {
  MpsLogDetector nowhere(*loop_, real_, clock_, {.directory = "/nowhere/at/all", .domain = {}}, note_fault());
  const Status started = nowhere.start();
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message, testing::HasSubstr("no MPS server log"));
}

}  // namespace
}  // namespace firebreak::watch
