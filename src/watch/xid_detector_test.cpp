// SPDX-License-Identifier: Apache-2.0
#include "watch/xid_detector.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <array>

#include "watch/detector_test_support.h"

namespace firebreak::watch {
namespace {

using testing::HasSubstr;

const std::string memory_fault =
    "4,1234,5678901,-;NVRM: Xid (PCI:0000:00:05): 31, pid=4711, name=python3, Ch 00000008, intr 00000000. "
    "MMU Fault: "
    "ENGINE GRAPHICS GPC2 GPCCLIENT_T1_3 faulted @ 0x7000_dead0000. Fault is of type FAULT_PDE "
    "ACCESS_TYPE_VIRT_WRITE\n "
    "SUBSYSTEM=pci\n";
const std::string trap = "4,1235,5678902,-;NVRM: Xid (PCI:0000:00:06): 43, pid=9, name=x, Ch 00000001\n";

class XidDetectorTest : public DetectorTest {
 protected:
  XidDetectorTest() { kernel_.set_device("/dev/kmsg", feed_.device()); }

  XidDetector detector(XidDetectorOptions options = {}) {
    return XidDetector(*loop_, kernel_, clock_, std::move(options), note_fault(), note_end());
  }

  os::FakeRecordFeed feed_;
};

TEST_F(XidDetectorTest, TurnsAnXidRecordIntoAFault) {
  XidDetector watcher = detector();
  ASSERT_TRUE(watcher.start());
  feed_.push(memory_fault);
  ASSERT_TRUE(run_until([&] { return faults_.size() == 1; }));
  EXPECT_EQ(faults_[0].fault_class, fault::FaultClass::MmuReplayable);
  EXPECT_EQ(faults_[0].xid, 31);
  EXPECT_EQ(faults_[0].pid, 4711);
  EXPECT_EQ(faults_[0].address, 0x7000dead0000u);
  EXPECT_EQ(faults_[0].when, clock_.now());
  EXPECT_EQ(faults_[0].source, fault::FaultSource::Xid);
}

TEST_F(XidDetectorTest, SkipsWhatTheLogAlreadyHolds) {
  feed_.push(memory_fault);
  feed_.push(memory_fault);
  XidDetector watcher = detector();
  ASSERT_TRUE(watcher.start());
  feed_.push(trap);
  ASSERT_TRUE(run_until([&] { return !faults_.empty(); }));
  settle();
  ASSERT_EQ(faults_.size(), 1u);
  EXPECT_EQ(faults_[0].xid, 43);
}

TEST_F(XidDetectorTest, NamesTheGpuByItsAddress) {
  XidDetector watcher = detector({.gpu_of_pci = {{"0000:00:06", 1}}, .reading = {}});
  ASSERT_TRUE(watcher.start());
  feed_.push(memory_fault);
  feed_.push(trap);
  ASSERT_TRUE(run_until([&] { return faults_.size() == 2; }));
  EXPECT_EQ(faults_[0].gpu, 0u);
  EXPECT_EQ(faults_[1].gpu, 1u);
}

TEST_F(XidDetectorTest, IgnoresOtherMessagesAndMalformedRecords) {
  XidDetector watcher = detector();
  ASSERT_TRUE(watcher.start());
  feed_.push("6,1,2,-;usb 1-1: new device\n");
  feed_.push("NVRM: Xid (PCI:0000:00:05): 31");
  feed_.push(";NVRM: Xid (PCI:0000:00:05): 31");
  feed_.push("4;NVRM: Xid (PCI:0000:00:05): 31");
  feed_.push(std::string("\xff\x00\xfe", 3));
  feed_.push(trap);
  ASSERT_TRUE(run_until([&] { return !faults_.empty(); }));
  EXPECT_EQ(faults_.size(), 1u);
  EXPECT_EQ(watcher.counters().records, 6u);
  EXPECT_EQ(watcher.counters().malformed, 4u);
  EXPECT_EQ(watcher.counters().faults, 1u);
}

TEST_F(XidDetectorTest, AProcessCannotForgeAnXid) {
  XidDetector watcher = detector();
  ASSERT_TRUE(watcher.start());
  // Facility 1 (user) is what the kernel stamps on records that a process wrote.
  feed_.push("12,1,2,-;NVRM: Xid (PCI:0000:00:05): 31, pid=4711");
  feed_.push(trap);
  ASSERT_TRUE(run_until([&] { return watcher.counters().records == 2; }));
  ASSERT_EQ(faults_.size(), 1u);
  EXPECT_EQ(faults_[0].xid, 43);
}

TEST_F(XidDetectorTest, GoesOnAfterAnOverrun) {
  XidDetector watcher = detector();
  ASSERT_TRUE(watcher.start());
  feed_.push_failure(Error{ErrorCode::Protocol, "read: Broken pipe", {}});
  feed_.push(trap);
  ASSERT_TRUE(run_until([&] { return faults_.size() == 1; }));
  EXPECT_EQ(watcher.counters().overruns, 1u);
  EXPECT_TRUE(ends_.empty());
}

TEST_F(XidDetectorTest, SurvivesAnOverrunOfTheBacklog) {
  feed_.push_failure(Error{ErrorCode::Protocol, "read: Broken pipe", {}});
  feed_.push(memory_fault);
  XidDetector watcher = detector();
  ASSERT_TRUE(watcher.start());
  feed_.push(trap);
  ASSERT_TRUE(run_until([&] { return faults_.size() == 1; }));
  EXPECT_EQ(faults_[0].xid, 43);
}

/// A log that wakes nobody, as the real one until the next timer tick.
class SilentLogTest : public XidDetectorTest {
 protected:
  SilentLogTest() {
    os::FakeDevice silent;
    silent.read = [this](const os::Fd&, std::span<std::byte> into) -> Result<std::size_t> {
      ++reads_;
      if (!std::exchange(record_waits_, false)) return fail(ErrorCode::Unavailable, "nothing");
      std::memcpy(into.data(), trap.data(), trap.size());
      return trap.size();
    };
    kernel_.set_device("/dev/kmsg", silent);
  }

  bool record_waits_ = false;
  int reads_ = 0;
};

TEST_F(SilentLogTest, IsReadAheadOfItsWakeUpWhenAskedTo) {
  XidDetector watcher =
      detector({.gpu_of_pci = {}, .reading = {.idle_period = std::chrono::microseconds(100)}});
  ASSERT_TRUE(watcher.start());
  record_waits_ = true;
  EXPECT_TRUE(run_until([&] { return faults_.size() == 1; }));
}

TEST_F(SilentLogTest, IsLeftAloneWhileNothingHappens) {
  XidDetector watcher = detector();
  ASSERT_TRUE(watcher.start());
  const int before = reads_;
  EXPECT_FALSE(loop_->run_once(Milliseconds(20)));
  EXPECT_EQ(reads_, before);
}

TEST_F(SilentLogTest, IsReadOnceSomethingIsSuspected) {
  XidDetector watcher = detector();
  ASSERT_TRUE(watcher.start());
  watcher.suspect();
  record_waits_ = true;
  EXPECT_TRUE(run_until([&] { return faults_.size() == 1; }));
  clock_.advance(std::chrono::seconds(1));
  const int last_but_one = reads_;
  ASSERT_TRUE(run_until([&] { return reads_ > last_but_one; }));
  const int before = reads_;
  EXPECT_FALSE(loop_->run_once(Milliseconds(20)));
  EXPECT_EQ(reads_, before);
}

TEST_F(SilentLogTest, IsReadWhenTheBellRingsUntilTheMessageIsThere) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC), 0);
  const os::Fd hammer(ends[1]);
  kernel_.set_kernel_log_bell(os::Fd(ends[0]));
  XidDetector watcher = detector();
  ASSERT_TRUE(watcher.start());
  EXPECT_FALSE(watcher.late_because());
  const int before = reads_;
  ASSERT_EQ(::write(hammer.get(), "ding", 4), 4);
  ASSERT_TRUE(run_until([&] { return reads_ > before + 3; }));
  record_waits_ = true;
  EXPECT_TRUE(run_until([&] { return faults_.size() == 1; }));
}

TEST_F(XidDetectorTest, AFloodDoesNotStarveTheLoop) {
  int left = 1000;
  os::FakeDevice flood;
  flood.read = [&](const os::Fd&, std::span<std::byte> into) -> Result<std::size_t> {
    if (left == 1000) {
      --left;
      return fail(ErrorCode::Unavailable, "nothing");
    }
    if (left == 0) return fail(ErrorCode::Unavailable, "nothing");
    --left;
    std::memcpy(into.data(), trap.data(), trap.size());
    return trap.size();
  };
  kernel_.set_device("/dev/kmsg", flood);
  XidDetector watcher =
      detector({.gpu_of_pci = {}, .reading = {.idle_period = std::chrono::microseconds(100)}});
  ASSERT_TRUE(watcher.start());
  ASSERT_TRUE(loop_->run_once(Milliseconds(10'000)));
  EXPECT_LT(faults_.size(), 999u);
  EXPECT_TRUE(run_until([&] { return faults_.size() == 999; }));
}

TEST_F(XidDetectorTest, SaysWhichRightIsMissing) {
  kernel_.refuse("/dev/kmsg",
                 Error{ErrorCode::PermissionDenied, "open /dev/kmsg: Operation not permitted", {}});
  XidDetector watcher = detector();
  const Status started = watcher.start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::PermissionDenied);
  EXPECT_THAT(to_string(started.error()), HasSubstr("CAP_SYSLOG"));
}

TEST_F(XidDetectorTest, SaysSoWhenTheLogEnds) {
  XidDetector watcher = detector();
  ASSERT_TRUE(watcher.start());
  feed_.end();
  EXPECT_TRUE(run_until([&] { return ends_.size() == 1; }));
}

TEST_F(XidDetectorTest, SaysSoWhenTheLogCannotBeReadAnyMore) {
  XidDetector watcher = detector();
  ASSERT_TRUE(watcher.start());
  feed_.push_failure(Error{ErrorCode::Internal, "read: Input/output error", {}});
  ASSERT_TRUE(run_until([&] { return ends_.size() == 1; }));
  EXPECT_THAT(ends_[0].message, HasSubstr("Input/output"));
}

}  // namespace
}  // namespace firebreak::watch
