// SPDX-License-Identifier: Apache-2.0
/// UVM's events of several processes; those of one: uvm_listener_test.cpp.
#include "agent/faults/watch/uvm_detector.h"

#include <gmock/gmock.h>

#include "tests/doubles/watch/detector_test_support.h"

namespace firebreak::watch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr pid_t decode = 10;
constexpr pid_t denoise = 11;

class UvmDetectorTest : public DetectorTest {
 protected:
  UvmDetectorTest() : tools_(kernel_) {
    for (const pid_t pid : {decode, denoise}) {
      kernel_.add_process(pid);
      kernel_.give_descriptor(pid, 11, "/dev/nvidia-uvm", FakeUvmTools::va_space());
    }
    at_.on_uvm_heard = [this](pid_t pid) { heard_.push_back(pid); };
  }
  Status follow(pid_t pid) {
    return detector_.follow({.pid = pid, .gpu = 0, .domain = "a", .tenant = {}}, Parentage::Stranger);
  }
  void fault() {
    tools_.post_fatal_fault(64, clock_.now());
    settle();
  }

  FakeUvmTools tools_;
  std::vector<pid_t> heard_;
  Workplace at_ = workplace();
  UvmDetector detector_{at_};
};

TEST_F(UvmDetectorTest, AMachineWithoutItsNodeSaysSo) {
  EXPECT_TRUE(detector_.start());
  kernel_.remove(abi::uvm_tools_path);
  EXPECT_THAT(to_string(detector_.start().error()), HasSubstr("nvidia-modprobe"));
}

TEST_F(UvmDetectorTest, EachProcessIsHeardUntilItIsStopped) {
  EXPECT_EQ(detector_.hears_uvm_of(decode), UvmHearing::No);
  ASSERT_TRUE(follow(decode));
  ASSERT_TRUE(follow(denoise));
  EXPECT_THAT(heard_, ElementsAre(decode, denoise));
  EXPECT_EQ(detector_.hears_uvm_of(decode), UvmHearing::Yes);
  EXPECT_TRUE(detector_.listen_to_page_faults(denoise));
  fault();  // the fake has one queue: that of the latest
  ASSERT_EQ(faults_.size(), 1u);
  EXPECT_EQ(faults_[0].pid, denoise);
  detector_.stop(denoise);
  EXPECT_EQ(detector_.hears_uvm_of(denoise), UvmHearing::No);
  EXPECT_FALSE(detector_.listen_to_page_faults(denoise));
  EXPECT_EQ(detector_.hears_uvm_of(decode), UvmHearing::Yes);
}

TEST_F(UvmDetectorTest, WhatWaitsIsToldWhenItIsAskedForAndWhenItStops) {
  ASSERT_TRUE(follow(decode));
  tools_.post_fatal_fault(64, clock_.now());
  detector_.read_now(denoise);
  EXPECT_TRUE(faults_.empty());
  detector_.read_now(decode);
  EXPECT_EQ(faults_.size(), 1u);
  tools_.post_fatal_fault(128, clock_.now());
  detector_.stop(decode);
  EXPECT_EQ(faults_.size(), 2u);
}

TEST_F(UvmDetectorTest, ADriverOfAnotherKindIsNotAskedForTheNextProcess) {
  tools_.knows_v1 = false;
  EXPECT_TRUE(follow(decode));
  tools_.knows_v1 = true;
  EXPECT_TRUE(follow(denoise));
  EXPECT_EQ(detector_.hears_uvm_of(denoise), UvmHearing::No);
  EXPECT_EQ(tools_.trackers, 0);
}

TEST_F(UvmDetectorTest, WithoutADescriptorItIsTriedUntilThereIsOne) {
  kernel_.refuse_pidfd_getfd(Error{ErrorCode::ResourceExhausted, "Too many open files", {}});
  EXPECT_TRUE(follow(decode));
  EXPECT_EQ(detector_.hears_uvm_of(decode), UvmHearing::NoDescriptors);
  kernel_.refuse_pidfd_getfd(std::nullopt);
  ASSERT_TRUE(run_until([&] { return detector_.hears_uvm_of(decode) == UvmHearing::Yes; }));
  EXPECT_THAT(heard_, ElementsAre(decode));
}

TEST_F(UvmDetectorTest, AQueueThatMakesNoSenseIsAGapOfItsProcess) {
  ASSERT_TRUE(follow(decode));
  tools_.corrupt_put_index();
  ASSERT_TRUE(run_until([&] { return !gaps_.empty(); }));
  EXPECT_EQ(gaps_[0].source, fault::FaultSource::UvmEvent);
  EXPECT_EQ(gaps_[0].pid, decode);
  EXPECT_EQ(gaps_[0].domain, "a");
  EXPECT_TRUE(gaps_[0].danger);
  EXPECT_EQ(detector_.hears_uvm_of(decode), UvmHearing::No);
}

TEST_F(UvmDetectorTest, TheEndOfAProcessIsNoGap) {
  ASSERT_TRUE(follow(decode));
  kernel_.exit_process(decode, {0, 9});
  ASSERT_TRUE(run_until([&] { return detector_.hears_uvm_of(decode) == UvmHearing::No; }));
  EXPECT_TRUE(gaps_.empty());
}

}  // namespace
}  // namespace firebreak::watch
