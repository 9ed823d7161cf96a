// SPDX-License-Identifier: Apache-2.0
// Guard pages found among a process's descriptors, and the events of a scripted UVM tools node on their way
// to being strays.
#include "agent/faults/strays/stray_watch.h"

#include <fcntl.h>
#include <gmock/gmock.h>

#include "agent/faults/watch/watcher.h"
#include "ground/base/units.h"
#include "ground/os/descriptors.h"
#include "ground/os/memory.h"
#include "program/guard/ledger.h"
#include "tests/doubles/watch/detector_test_support.h"

namespace firebreak::strays {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr pid_t tenant = 4711;
constexpr std::uint64_t base = 0x4000'0000'0000;
constexpr const char* page_link = "/memfd:firebreak-guard (deleted)";

/// A watcher and a stray watch, joined as their users join them.
class StrayWatchTest : public watch::DetectorTest {
 protected:
  StrayWatchTest() : tools_(kernel_) {
    kernel_.set_device("/dev/kmsg", feed_.device());
    kernel_.add_process(tenant);
    EXPECT_TRUE(ledger_.covered(base, base + gib, gib));
    ledger_.allocated(abi::GuardFunction::MemAlloc, base, mib);
    watch::WatcherOptions options;
    options.nvml_library.clear();
    watch::WatcherCallbacks heard;
    heard.on_signal = [this](const fault::Fault& fault) { strays_->note_signal(fault); };
    heard.on_page_fault = [this](const watch::PageFault& seen) {
      ++page_faults_;
      strays_->note_page_fault(seen);
    };
    heard.on_uvm_heard = [this](pid_t pid) { strays_->expect_guard(pid); };
    watcher_ = std::make_unique<watch::Watcher>(*loop_, kernel_, clock_, options, heard);
    StrayWatchCallbacks callbacks;
    callbacks.on_stray = [this](const Stray& stray) { told_.push_back(stray); };
    callbacks.on_guard = [this](pid_t, const GuardReport& guard) { guards_.push_back(guard); };
    callbacks.on_listen = [this](pid_t pid) { return watcher_->listen_to_page_faults(pid); };
    strays_ = std::make_unique<StrayWatch>(*loop_, kernel_, StrayWatchOptions{}, callbacks);
  }
  void opens_a_va_space() {
    kernel_.give_descriptor(tenant, 11, "/dev/nvidia-uvm", watch::FakeUvmTools::va_space());
  }
  void shows_its_page() { kernel_.give_descriptor(tenant, 12, page_link, page()); }
  os::Fd page() const { return os::Fd(::fcntl(ledger_.descriptor(), F_DUPFD_CLOEXEC, 0)); }
  void follow() {
    watcher_->start();
    ASSERT_TRUE(watcher_->follow({.pid = tenant, .gpu = 0, .domain = "a", .tenant = "decode"}));
    strays_->follow(tenant);
  }
  bool page_faults_are_asked_for() const {
    return (tools_.enabled & abi::uvm_event_mask(abi::UvmEventType::GpuFault)) != 0;
  }
  void post_page_fault(std::uint64_t address) { tools_.post_page_fault(address, clock_.now()); }
  void post_fatal_fault(std::uint64_t address) { tools_.post_fatal_fault(address, clock_.now()); }

  watch::FakeUvmTools tools_;
  os::FakeRecordFeed feed_;
  guard::Ledger ledger_ = guard::Ledger::create().value();
  std::unique_ptr<watch::Watcher> watcher_;
  std::unique_ptr<StrayWatch> strays_;
  std::vector<Stray> told_;
  std::vector<GuardReport> guards_;
  int page_faults_ = 0;
};

TEST_F(StrayWatchTest, WhatThereWasNoDescriptorForIsWatchedOnceThereIsOne) {
  kernel_.refuse_pidfd_getfd(Error{ErrorCode::ResourceExhausted, "too many open files", {}});
  opens_a_va_space();
  shows_its_page();
  follow();
  EXPECT_TRUE(strays_->lacks(tenant));
  EXPECT_TRUE(watcher_->lacks_uvm_of(tenant));
  kernel_.refuse_pidfd_getfd(std::nullopt);
  EXPECT_TRUE(
      run_until([&] { return watcher_->hears_uvm_of(tenant) && strays_->guard_of(tenant) != nullptr; }));
  EXPECT_FALSE(strays_->lacks(tenant));
  EXPECT_FALSE(watcher_->lacks_uvm_of(tenant));
  EXPECT_TRUE(page_faults_are_asked_for());
}

TEST_F(StrayWatchTest, AmongVeryManyThatAreCalledSoAPageIsNotLookedForWithoutEnd) {
  for (int number = 100; number < 100 + static_cast<int>(os::most_closer_looks); ++number)
    kernel_.give_descriptor(tenant, number, page_link, os::create_memory_file("none", 4096).value());
  kernel_.give_descriptor(tenant, 999, page_link, page());
  follow();
  settle();
  EXPECT_EQ(strays_->guard_of(tenant), nullptr);
}

TEST_F(StrayWatchTest, BehindManyDescriptorsAPageIsFoundInSeveralTurns) {
  const os::Fd file = os::create_memory_file("many", 1).value();
  for (int number = 100; number < 100 + 3 * static_cast<int>(os::most_descriptors_in_a_look); ++number)
    kernel_.give_descriptor(tenant, number, "socket:[9]", os::duplicate(file.get()).value());
  kernel_.give_descriptor(tenant, 5'000, page_link, page());
  follow();
  EXPECT_EQ(strays_->guard_of(tenant), nullptr) << "in one turn";
  EXPECT_TRUE(run_until([&] { return strays_->guard_of(tenant) != nullptr; }));
}

TEST_F(StrayWatchTest, WhatComesFirstWaitsForNoLookAtOneWithoutAPage) {
  kernel_.give_descriptor(tenant, 5, "socket:[9]", page());
  strays_->follow(tenant);
  int looks = 0;
  kernel_.on_link_read([&] { looks += loop_->urgent() >= 0 ? 1 : 0; });
  EXPECT_TRUE(run_until([&] { return looks > 1; }));
  kernel_.on_link_read({});
}

TEST_F(StrayWatchTest, AStrayOfAGuardedProcessIsTold) {
  opens_a_va_space();
  shows_its_page();
  follow();
  post_page_fault(base + mib + 72);
  ASSERT_TRUE(run_until([&] { return !told_.empty(); }));
  EXPECT_EQ(
      describe(told_[0]),
      "store to 0x400000100048, 72 bytes past the end of a 1 MiB allocation made by cuMemAlloc, call 1");
  EXPECT_EQ(told_[0].domain, "a");
  EXPECT_EQ(strays_->summary_of(tenant).count, 1u);
  EXPECT_EQ(strays_->summary_of(tenant).blocks, 1u);
}

TEST_F(StrayWatchTest, AGuardedProcessLearnsWhenItsStraysAreHeard) {
  shows_its_page();
  follow();
  settle();
  EXPECT_FALSE(ledger_.is_heard()) << "it has no VA space yet";
  opens_a_va_space();
  ASSERT_TRUE(run_until([&] { return watcher_->hears_uvm_of(tenant); }));
  EXPECT_TRUE(ledger_.is_heard());
  EXPECT_TRUE(page_faults_are_asked_for());
}

TEST_F(StrayWatchTest, APageFaultThatBecomesFatalIsAFaultAndNoStray) {
  opens_a_va_space();
  shows_its_page();
  follow();
  post_page_fault(base + 2 * mib);
  post_fatal_fault(base + 2 * mib);
  post_page_fault(base + 8 * mib);
  ASSERT_TRUE(run_until([&] { return !told_.empty(); }));
  ASSERT_THAT(told_, SizeIs(1));
  EXPECT_EQ(told_[0].address, base + 8 * mib);
}

TEST_F(StrayWatchTest, AProcessWithoutAPageIsNotListenedTo) {
  opens_a_va_space();
  kernel_.give_descriptor(tenant, 12, "/memfd:something-else (deleted)", page());
  follow();
  ASSERT_TRUE(watcher_->hears_uvm_of(tenant));
  EXPECT_FALSE(page_faults_are_asked_for());
  EXPECT_FALSE(strays_->summary_of(tenant).guard);
}

TEST_F(StrayWatchTest, APageThatIsNoneIsPassedOver) {
  opens_a_va_space();
  kernel_.give_descriptor(tenant, 12, page_link, os::create_memory_file("x", 4096).value());
  follow();
  EXPECT_FALSE(page_faults_are_asked_for());
  kernel_.give_descriptor(tenant, 13, page_link, page());
  EXPECT_TRUE(run_until([&] { return page_faults_are_asked_for(); }));
}

TEST_F(StrayWatchTest, APageThatComesBeforeTheGpuIsUsedMissesNothing) {
  shows_its_page();
  follow();
  ASSERT_TRUE(strays_->summary_of(tenant).guard);
  opens_a_va_space();
  ASSERT_TRUE(run_until([&] { return watcher_->hears_uvm_of(tenant); }));
  EXPECT_TRUE(page_faults_are_asked_for());
}

TEST_F(StrayWatchTest, AGuardThatIsOffIsSaidWithItsReasonAndOnce) {
  shows_its_page();
  follow();
  ASSERT_THAT(guards_, SizeIs(1));
  EXPECT_EQ(describe(guards_[0]), "starting");
  ledger_.set_state(abi::GuardState::Off, "no UVM descriptor");
  ASSERT_TRUE(run_until([&] { return guards_.size() == 2; }));
  EXPECT_EQ(describe(guards_[1]), "off: no UVM descriptor");
  strays_->expect_guard(tenant);
  EXPECT_THAT(guards_, SizeIs(2));
}

TEST_F(StrayWatchTest, WhoEndsIsForgottenAfterHisLastStray) {
  opens_a_va_space();
  shows_its_page();
  follow();
  post_page_fault(base + 2 * mib);
  // Both come in one go: nothing is confirmed yet when the process is seen to have ended.
  ASSERT_TRUE(run_until([&] { return page_faults_ == 1; }));
  EXPECT_EQ(strays_->forget(tenant).count, 1u);
  EXPECT_THAT(told_, SizeIs(1));
  EXPECT_FALSE(strays_->summary_of(tenant).guard);
  post_page_fault(base + 9 * mib);
  ASSERT_TRUE(run_until([&] { return page_faults_ == 2; }));
  settle();
  EXPECT_THAT(told_, SizeIs(1));
}

}  // namespace
}  // namespace firebreak::strays
