// SPDX-License-Identifier: Apache-2.0
#include "agent/faults/strays/guarded_watch.h"

#include <fcntl.h>
#include <gmock/gmock.h>

#include "ground/base/units.h"
#include "program/guard/ledger.h"
#include "tests/doubles/watch/detector_test_support.h"

namespace firebreak::strays {
namespace {

using testing::SizeIs;

constexpr pid_t tenant = 4711;
constexpr std::uint64_t base = 0x4000'0000'0000;

class GuardedWatchTest : public watch::DetectorTest {
 protected:
  GuardedWatchTest()
      : tools_(kernel_),
        strays_(*loop_, kernel_,
                {[this](const Stray& stray) { told_.push_back(stray); },
                 [this](pid_t, const GuardReport& guard) { guards_.push_back(guard); }}) {
    kernel_.set_device("/dev/kmsg", feed_.device());
    kernel_.add_process(tenant);
    EXPECT_TRUE(ledger_.covered(base, base + gib, gib));
    watch::WatcherOptions options;
    options.nvml_library.clear();
    watch::WatcherCallbacks callbacks;
    callbacks.on_signal = note_fault();
    callbacks.on_page_fault = [this](const watch::PageFault& seen) { page_faults_.push_back(seen); };
    callbacks.on_uvm_heard = [this](pid_t pid) {
      heard_.push_back(pid);
      guard_was_heard_first_ = strays_.is_heard(pid);
    };
    callbacks.on_exit = [this](const watch::ProcessExit& exit) {
      guard_at_exit_ = strays_.guard_of(exit.pid);
      strays_at_exit_ = strays_.summary_of(exit.pid).count;
    };
    watcher_.emplace(*loop_, kernel_, clock_, options, strays_.hear(callbacks));
    strays_.attach(*watcher_);
    watcher_->start();
  }
  void opens_a_va_space() {
    kernel_.give_descriptor(tenant, 11, "/dev/nvidia-uvm", watch::FakeUvmTools::va_space());
  }
  void follow_with_a_page() {
    kernel_.give_descriptor(tenant, 12, "/memfd:firebreak-guard (deleted)",
                            os::Fd(::fcntl(ledger_.descriptor(), F_DUPFD_CLOEXEC, 0)));
    ASSERT_TRUE(watcher_->follow({.pid = tenant, .gpu = 0, .domain = "a", .tenant = "decode"}));
    strays_.follow(tenant);
  }
  void follow() {
    opens_a_va_space();
    follow_with_a_page();
    ASSERT_TRUE(run_until([&] { return strays_.is_heard(tenant); }));
  }
  void post_page_fault(std::uint64_t address) { tools_.post_page_fault(address, clock_.now()); }
  void post_fatal_fault(std::uint64_t address) { tools_.post_fatal_fault(address, clock_.now()); }

  watch::FakeUvmTools tools_;
  os::FakeRecordFeed feed_;
  guard::Ledger ledger_ = guard::Ledger::create().value();
  GuardedWatch strays_;
  std::optional<watch::Watcher> watcher_;
  std::vector<Stray> told_;
  std::vector<GuardReport> guards_;
  std::vector<watch::PageFault> page_faults_;
  std::vector<pid_t> heard_;
  bool guard_was_heard_first_ = false;
  std::shared_ptr<const guard::GuardView> guard_at_exit_;
  std::uint64_t strays_at_exit_ = 0;
};

TEST_F(GuardedWatchTest, BothHearWhatTheWatcherHears) {
  EXPECT_FALSE(strays_.is_heard(tenant));
  follow();
  EXPECT_THAT(heard_, testing::ElementsAre(tenant));
  EXPECT_FALSE(guards_.empty());
  post_page_fault(base + 2 * mib);
  ASSERT_TRUE(run_until([&] { return !told_.empty(); }));
  EXPECT_THAT(page_faults_, SizeIs(1));
  EXPECT_EQ(strays_.summary_of(tenant).count, 1u);
}

TEST_F(GuardedWatchTest, AGuardIsHeardAsSoonAsItsProcessUsesTheGpu) {
  follow_with_a_page();
  settle();
  EXPECT_FALSE(strays_.is_heard(tenant));
  opens_a_va_space();
  ASSERT_TRUE(run_until([&] { return !heard_.empty(); }));
  EXPECT_TRUE(guard_was_heard_first_);
}

TEST_F(GuardedWatchTest, AFatalFaultIsASignalAndNoStray) {
  follow();
  post_page_fault(base + 2 * mib);
  post_fatal_fault(base + 2 * mib);
  post_page_fault(base + 8 * mib);
  ASSERT_TRUE(run_until([&] { return !told_.empty(); }));
  ASSERT_THAT(faults_, SizeIs(1));
  EXPECT_EQ(faults_[0].source, fault::FaultSource::UvmEvent);
  ASSERT_THAT(told_, SizeIs(1));
  EXPECT_EQ(told_[0].address, base + 8 * mib);
}

TEST_F(GuardedWatchTest, WhileAnEndIsToldItsGuardAndItsStraysAreKnownAndThenNoMore) {
  follow();
  post_page_fault(base + 2 * mib);
  ASSERT_TRUE(run_until([&] { return !told_.empty(); }));
  kernel_.exit_process(tenant, {});
  ASSERT_TRUE(run_until([&] { return strays_at_exit_ == 1; }));
  EXPECT_NE(guard_at_exit_, nullptr);
  EXPECT_EQ(strays_.guard_of(tenant), nullptr);
  EXPECT_EQ(strays_.summary_of(tenant).count, 0u);
}

}  // namespace
}  // namespace firebreak::strays
