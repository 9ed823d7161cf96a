// SPDX-License-Identifier: Apache-2.0
#include "watch/core_dump_detector.h"

#include "watch/detector_test_support.h"

namespace firebreak::watch {
namespace {

constexpr pid_t decode = 10;
constexpr const char* exception =
    "[06:43:15.2] coredump: Detected an exception of type CUDBG_EXCEPTION_WARP_MISALIGNED_ADDRESS (6)\n"
    "[06:43:15.2] coredump:   - PC 0x10\n";

class CoreDumpDetectorTest : public DetectorTest {
 protected:
  CoreDumpDetectorTest() { at_.options.merge_window = Milliseconds(1); }
  void follow() {
    ASSERT_TRUE(
        detector_.follow({.pid = decode, .gpu = 1, .domain = "a", .tenant = "decode"}, Parentage::Stranger));
  }

  Workplace at_ = workplace();
  CoreDumpDetector detector_{at_};
};

TEST_F(CoreDumpDetectorTest, WhatAProcessSaysIsItsFault) {
  detector_.note_output(decode, exception);
  EXPECT_TRUE(faults_.empty()) << "nobody follows it";
  follow();
  detector_.note_output(decode + 1, exception);
  EXPECT_TRUE(faults_.empty());
  detector_.note_output(decode, exception);
  ASSERT_EQ(faults_.size(), 1u);
  EXPECT_EQ(faults_[0].source, fault::FaultSource::CoreDump);
  EXPECT_EQ(faults_[0].pid, decode);
  EXPECT_EQ(faults_[0].domain, "a");
  EXPECT_EQ(faults_[0].tenant, "decode");
}

TEST_F(CoreDumpDetectorTest, LastWordsCountForAWhile) {
  follow();
  detector_.stop(decode);
  detector_.note_output(decode, exception);
  EXPECT_EQ(faults_.size(), 1u);
  EXPECT_TRUE(run_until([&] {
    faults_.clear();
    detector_.note_output(decode, exception);
    return faults_.empty();
  }));
}

}  // namespace
}  // namespace firebreak::watch
