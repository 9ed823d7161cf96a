// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/watch/xid_detector.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <array>

#include "tests/doubles/watch/detector_test_support.h"

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
    return XidDetector(*loop_, kernel_, clock_, std::move(options), note_fault(), note_gap());
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
  XidDetector watcher = detector();
  ASSERT_TRUE(watcher.start());
  feed_.push(memory_fault);
  feed_.push(trap);
  ASSERT_TRUE(run_until([&] { return faults_.size() == 2; }));
  EXPECT_EQ(faults_[0].gpu.pci, "0000:00:05");
  EXPECT_EQ(faults_[1].gpu.pci, "0000:00:06");
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
  EXPECT_FALSE(watcher.off_because());
}

TEST_F(XidDetectorTest, WhatWasOverwrittenIsAGapAndAFloodOfThemIsOne) {
  XidDetector watcher = detector();
  ASSERT_TRUE(watcher.start());
  for (int i = 0; i < 10; ++i) feed_.push_failure(Error{ErrorCode::Protocol, "read: Broken pipe", {}});
  ASSERT_TRUE(run_until([&] { return watcher.counters().overruns == 10; }));
  ASSERT_EQ(gaps_.size(), 1u);
  EXPECT_EQ(gaps_[0].source, fault::FaultSource::Xid);
  EXPECT_TRUE(gaps_[0].danger);
  EXPECT_FALSE(gaps_[0].pid);
  EXPECT_THAT(gaps_[0].text, HasSubstr("overwritten"));
  clock_.advance(std::chrono::seconds(1));
  feed_.push_failure(Error{ErrorCode::Protocol, "read: Broken pipe", {}});
  EXPECT_TRUE(run_until([&] { return gaps_.size() == 2; }));
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
  XidDetector watcher = detector({.reading = {.idle_period = std::chrono::microseconds(100)}});
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
  XidDetector watcher = detector({.reading = {.idle_period = std::chrono::microseconds(100)}});
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

// The error is as EINVAL, of a record that is longer than any: Linux passes it over.
TEST_F(XidDetectorTest, ARecordThatCannotBeReadIsAGapAndNoEnd) {
  XidDetector watcher = detector();
  ASSERT_TRUE(watcher.start());
  feed_.push_failure(Error{ErrorCode::Internal, "read: Invalid argument", {}});
  feed_.push(trap);
  ASSERT_TRUE(run_until([&] { return faults_.size() == 1; }));
  ASSERT_EQ(gaps_.size(), 1u);
  EXPECT_THAT(gaps_[0].text, HasSubstr("Invalid argument"));
  EXPECT_FALSE(watcher.off_because());
}

/// A log that can be opened again and again, and says what it is told to.
class BrokenLogTest : public XidDetectorTest {
 protected:
  BrokenLogTest() {
    os::FakeDevice log;
    log.read = [this](const os::Fd& fd, std::span<std::byte> into) -> Result<std::size_t> {
      std::uint64_t count = 0;
      [[maybe_unused]] const ssize_t size = ::read(fd.get(), &count, sizeof(count));
      if (broken_) return tl::unexpected<Error>(*broken_);
      if (at_its_end_) return std::size_t{0};
      if (records_.empty()) return fail(ErrorCode::Unavailable, "nothing");
      const std::string record = records_.front();
      records_.erase(records_.begin());
      std::memcpy(into.data(), record.data(), record.size());
      return record.size();
    };
    kernel_.set_device("/dev/kmsg", log);
  }
  XidDetector quick() {
    XidDetectorOptions options;
    options.first_retry = options.longest_retry = std::chrono::milliseconds(1);
    return detector(options);
  }
  void say(const std::string& record) {
    records_.push_back(record);
    kernel_.wake("/dev/kmsg");
  }
  void expect_heard_again(XidDetector& watcher) {
    ASSERT_TRUE(run_until([&] { return watcher.counters().reopened > 0; }));
    EXPECT_FALSE(watcher.off_because());
    say(trap);
    EXPECT_TRUE(run_until([&] { return faults_.size() == 1; }));
  }

  std::optional<Error> broken_;
  bool at_its_end_ = false;
  std::vector<std::string> records_;
};

TEST_F(BrokenLogTest, OneThatFailsAgainAndAgainIsOpenedUntilItCanBeRead) {
  for (const char* why : {"read: Input/output error", "read: No such device", "read: Bad address"}) {
    faults_.clear();
    gaps_.clear();
    XidDetector watcher = quick();
    ASSERT_TRUE(watcher.start());
    broken_ = Error{ErrorCode::Internal, why, {}};
    kernel_.wake("/dev/kmsg");
    ASSERT_TRUE(run_until([&] { return watcher.off_because().has_value(); }));
    EXPECT_THAT(watcher.off_because()->message, HasSubstr(why));
    const int opened = kernel_.opened("/dev/kmsg");
    ASSERT_TRUE(run_until([&] { return kernel_.opened("/dev/kmsg") > opened + 3; }));
    EXPECT_TRUE(watcher.off_because());
    // The fault that was printed meanwhile is none of now.
    records_.push_back(memory_fault);
    broken_.reset();
    expect_heard_again(watcher);
    EXPECT_EQ(faults_.front().xid, 43);
    EXPECT_THAT(gaps_.back().text, HasSubstr("read again"));
  }
}

TEST_F(BrokenLogTest, OneThatEndsIsOpenedAgain) {
  XidDetector watcher = quick();
  ASSERT_TRUE(watcher.start());
  at_its_end_ = true;
  kernel_.wake("/dev/kmsg");
  ASSERT_TRUE(run_until([&] { return watcher.off_because().has_value(); }));
  EXPECT_THAT(gaps_.back().text, HasSubstr("ended"));
  at_its_end_ = false;
  expect_heard_again(watcher);
}

TEST_F(BrokenLogTest, OneThatCannotBeOpenedForAWhileIsTriedAgain) {
  XidDetector watcher = quick();
  ASSERT_TRUE(watcher.start());
  at_its_end_ = true;
  kernel_.wake("/dev/kmsg");
  ASSERT_TRUE(run_until([&] { return watcher.off_because().has_value(); }));
  kernel_.refuse("/dev/kmsg", Error{ErrorCode::ResourceExhausted, "open: Too many open files", {}});
  ASSERT_TRUE(run_until([&] { return watcher.off_because()->code == ErrorCode::ResourceExhausted; }));
  EXPECT_EQ(watcher.counters().reopened, 0u);
  at_its_end_ = false;
  kernel_.permit("/dev/kmsg");
  expect_heard_again(watcher);
}

}  // namespace
}  // namespace firebreak::watch
