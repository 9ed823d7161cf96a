// SPDX-License-Identifier: Apache-2.0
// Against the real kernel, with this process as the one that is followed: how much of it is looked at, and
// that its guard page is found all the same.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>

#include "agent/faults/strays/stray_watch.h"
#include "ground/os/descriptors.h"
#include "program/guard/ledger.h"
#include "tests/doubles/os/counting_kernel.h"

namespace firebreak::strays {
namespace {

class StrayWatchLooks : public testing::Test {
 protected:
  void SetUp() override {
    if (!os::count_descriptors(kernel_, ::getpid())) GTEST_SKIP() << "Linux counts descriptors from 6.2 on";
  }
  void follow(std::uint32_t most_glances) {
    StrayWatchOptions options;
    options.first_pause = options.longest_pause = Milliseconds(1);
    options.most_glances = most_glances;
    StrayWatchCallbacks callbacks;
    callbacks.on_guard = [this](pid_t, const GuardReport&) { ++guards_; };
    strays_.emplace(*loop_, kernel_, options, callbacks);
    strays_->follow(::getpid());
    strays_->expect_guard(::getpid());
  }
  /// Looks so many times, however long that takes.
  void look(int times) {
    const int before = kernel_.counts;
    while (kernel_.counts < before + times) loop_->run_once(std::nullopt);
  }

  std::unique_ptr<os::EventLoop> loop_ = std::move(os::EventLoop::create().value());
  os::CountingKernel kernel_;
  std::optional<StrayWatch> strays_;
  int guards_ = 0;
};

TEST_F(StrayWatchLooks, AtTheNumberOfDescriptorsAloneWhereThatHasNotChanged) {
  follow(1'000'000);
  look(3);
  const int links = kernel_.links;
  look(20);
  EXPECT_EQ(kernel_.links, links);
  EXPECT_EQ(guards_, 0);
}

TEST_F(StrayWatchLooks, ThroughAllOfThemAfterSomeGlances) {
  follow(4);
  look(3);
  const int links = kernel_.links;
  look(20);
  EXPECT_GT(kernel_.links, links);
}

TEST_F(StrayWatchLooks, AGuardPageThatComesIsFound) {
  follow(1'000'000);
  look(3);
  const auto ledger = guard::Ledger::create().value();
  while (guards_ == 0) loop_->run_once(std::nullopt);
  EXPECT_NE(strays_->guard_of(::getpid()), nullptr);
}

TEST_F(StrayWatchLooks, AGuardPageInThePlaceOfAnotherDescriptorIsFoundInTheEnd) {
  const int file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  follow(4);
  look(3);
  ::close(file);
  const auto ledger = guard::Ledger::create().value();
  while (guards_ == 0) loop_->run_once(std::nullopt);
  EXPECT_NE(strays_->guard_of(::getpid()), nullptr);
}

}  // namespace
}  // namespace firebreak::strays
