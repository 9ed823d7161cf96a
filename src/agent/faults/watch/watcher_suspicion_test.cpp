// SPDX-License-Identifier: Apache-2.0
/// Tests of what makes a watcher look for Xid lines that nobody was woken for, with the real detectors.
#include <gtest/gtest.h>

#include "agent/faults/watch/uvm_queue.h"
#include "agent/faults/watch/watcher.h"
#include "tests/doubles/watch/detector_test_support.h"

namespace firebreak::watch {
namespace {

constexpr pid_t rogue = 4711;
const std::string trap = "4,1235,5678902,-;NVRM: Xid (PCI:0000:00:06): 43, pid=9, name=x, Ch 00000001\n";

/// A kernel log whose records wake nobody, as the real one's until the next timer tick.
class WatcherSuspicionTest : public DetectorTest {
 protected:
  WatcherSuspicionTest() : tools_(kernel_) {
    os::FakeDevice silent;
    silent.read = [this](const os::Fd& fd, std::span<std::byte> into) { return read(fd, into); };
    kernel_.set_device("/dev/kmsg", silent);
    kernel_.add_process(rogue);
    kernel_.give_descriptor(rogue, 11, "/dev/nvidia-uvm", FakeUvmTools::va_space());
    WatcherOptions options;
    options.nvml_library.clear();
    options.uvm_page_faults = true;
    WatcherCallbacks callbacks;
    callbacks.on_signal = note_fault();
    callbacks.on_gap = note_gap();
    watcher_.emplace(*loop_, kernel_, clock_, options, callbacks);
    EXPECT_TRUE(watcher_->start().empty());
    EXPECT_TRUE(watcher_->follow({.pid = rogue, .gpu = 0, .domain = "a", .tenant = "rogue"}));
    settle();
  }
  bool hears_the_xid() {
    record_waits_ = true;
    return run_until([&] { return !faults_.empty() && faults_.back().source == fault::FaultSource::Xid; });
  }

  FakeUvmTools tools_;
  bool record_waits_ = false;
  bool overrun_waits_ = false;
  std::optional<Watcher> watcher_;

 private:
  Result<std::size_t> read(const os::Fd& fd, std::span<std::byte> into) {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t size = ::read(fd.get(), &count, sizeof(count));
    if (std::exchange(overrun_waits_, false)) return fail(ErrorCode::Protocol, "read: Broken pipe");
    if (!std::exchange(record_waits_, false)) return fail(ErrorCode::Unavailable, "nothing");
    std::memcpy(into.data(), trap.data(), trap.size());
    return trap.size();
  }
};

// The log is as silent as the others take it for.
TEST_F(WatcherSuspicionTest, WithoutASuspicionTheLogIsLeftAlone) {
  record_waits_ = true;
  EXPECT_FALSE(loop_->run_once(Milliseconds(20)));
  EXPECT_TRUE(record_waits_);
}

TEST_F(WatcherSuspicionTest, AFaultOfAnotherSourceIsOne) {
  tools_.post_fatal_fault(0x7000dead0000, clock_.now());
  EXPECT_TRUE(hears_the_xid());
}

// Page faults are no signals: nothing but the gap says that something may be wrong.
TEST_F(WatcherSuspicionTest, EventsThatUvmDroppedAreOne) {
  for (unsigned i = 0; i < UvmQueue::entries + 9; ++i) tools_.post_page_fault(64 * i, clock_.now());
  ASSERT_TRUE(run_until([&] { return !gaps_.empty(); }));
  EXPECT_EQ(gaps_[0].source, fault::FaultSource::UvmEvent);
  EXPECT_TRUE(faults_.empty());
  EXPECT_TRUE(hears_the_xid());
}

TEST_F(WatcherSuspicionTest, RecordsOfTheLogItselfThatWereOverwrittenAreOne) {
  overrun_waits_ = true;
  kernel_.wake("/dev/kmsg");
  ASSERT_TRUE(run_until([&] { return !gaps_.empty(); }));
  EXPECT_EQ(gaps_[0].source, fault::FaultSource::Xid);
  EXPECT_TRUE(faults_.empty());
  EXPECT_TRUE(hears_the_xid());
}

TEST_F(WatcherSuspicionTest, SomebodyElsesWordIsOne) {
  watcher_->suspect();
  EXPECT_TRUE(hears_the_xid());
}

}  // namespace
}  // namespace firebreak::watch
