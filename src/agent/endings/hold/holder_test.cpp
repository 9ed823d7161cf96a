// SPDX-License-Identifier: Apache-2.0
#include "agent/endings/hold/holder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <semaphore>

#include "tests/doubles/os/fake_kernel.h"

namespace firebreak::hold {
namespace {

using testing::HasSubstr;

constexpr pid_t client = 42;
constexpr Nanoseconds never = std::chrono::hours(1);

/// A descriptor of a process, and whether anybody has it still.
class Watched {
 public:
  os::Fd make() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
    reader_ = os::Fd(ends[0]);
    return os::Fd(ends[1]);
  }
  bool is_open() const {
    char byte = 0;
    return ::read(reader_.get(), &byte, 1) != 0;  // the end of a pipe: nobody writes any more
  }

 private:
  os::Fd reader_;
};

class HolderTest : public testing::Test {
 protected:
  HolderTest() { kernel_.add_process(client); }

  /// `idle_wait` 0: nobody closes as quickly; never: everybody does.
  void hold(Nanoseconds time, Nanoseconds idle_wait = never, Nanoseconds longest = never) {
    HolderOptions options;
    options.hold = time;
    options.idle_wait = idle_wait;
    options.longest = longest;
    options.longest_look = longest_look_;
    HolderCallbacks callbacks;
    callbacks.watch_work = [this](pid_t) { return read_; };
    callbacks.on_endless = [this](pid_t pid) { endless_ = pid; };
    callbacks.on_released = [this](const Release& release) {
      released_ = release;
      left_at_release_ = holder_->held().size();
    };
    holder_.emplace(*loop_, kernel_, clock_, options, std::move(callbacks));
    ASSERT_TRUE(holder_->follow(client));
  }
  void give(int number, const std::string& link, Watched& watched) {
    kernel_.give_descriptor(client, number, link, watched.make());
  }
  void give_all() {
    give(3, "/dev/nvidiactl", manager_);
    give(4, "/dev/nvidia-uvm", space_);
    give(5, "/dev/nvidia0", mapping_);
  }
  void die() { kernel_.exit_process(client, {}); }
  template <class Done>
  void run_until(Done done) {
    while (!done()) loop_->run_once(std::nullopt);
  }
  void run_until_released() {
    run_until([&] { return released_.has_value(); });
  }

  os::FakeKernel kernel_;
  SystemClock clock_;
  std::unique_ptr<os::EventLoop> loop_ = os::EventLoop::create().value();
  Watched manager_;
  Watched space_;
  Watched mapping_;
  ReadWork read_;
  Nanoseconds longest_look_ = HolderOptions().longest_look;
  std::optional<pid_t> endless_;
  std::optional<Release> released_;
  std::size_t left_at_release_ = 0;
  std::optional<Holder> holder_;
};

TEST_F(HolderTest, KeepsEverythingForATime) {
  give_all();
  hold(std::chrono::milliseconds(1));
  die();
  EXPECT_FALSE(mapping_.is_open());  // nobody needs it
  EXPECT_TRUE(holder_->keep(client));
  EXPECT_TRUE(manager_.is_open());
  EXPECT_TRUE(space_.is_open());
  ASSERT_EQ(holder_->held().size(), 1u);
  EXPECT_TRUE(holder_->held().front().dead);
  run_until_released();
  EXPECT_EQ(released_->work, WorkEnd::Presumed);
  EXPECT_EQ(released_->pid, client);
  EXPECT_FALSE(manager_.is_open());
  EXPECT_FALSE(space_.is_open());
  EXPECT_TRUE(holder_->held().empty());
  EXPECT_THAT(describe(*released_), HasSubstr("its last kernels are taken to have ended"));
}

TEST_F(HolderTest, WhatThereWasNoDescriptorForIsHeldOnceThereIsOne) {
  kernel_.refuse_pidfd_getfd(Error{ErrorCode::ResourceExhausted, "too many open files", {}});
  give_all();
  hold(never);
  EXPECT_TRUE(holder_->lacks(client));
  EXPECT_TRUE(holder_->held().empty());
  kernel_.refuse_pidfd_getfd(std::nullopt);
  run_until([&] { return !holder_->lacks(client); });
  die();
  EXPECT_TRUE(holder_->keep(client));
  EXPECT_TRUE(space_.is_open());
}

TEST_F(HolderTest, TheAddressSpaceIsKeptUntilTheManagersHaveClosed) {
  std::binary_semaphore work_ends(0);
  std::binary_semaphore closing(0);
  os::FakeDevice device;
  device.close = [&](const os::Fd&) {
    closing.release();
    work_ends.acquire();
  };
  kernel_.set_device("/dev/nvidiactl", device);
  give_all();
  hold(Nanoseconds(1));
  die();
  EXPECT_TRUE(holder_->keep(client));
  while (!closing.try_acquire()) loop_->run_once(Milliseconds(1));
  EXPECT_TRUE(space_.is_open());
  EXPECT_FALSE(released_);
  work_ends.release();
  run_until_released();
  EXPECT_FALSE(space_.is_open());
}

TEST_F(HolderTest, WhoIsLetGoIsNotHeld) {
  give_all();
  hold(never);
  die();
  EXPECT_TRUE(holder_->keep(client));
  holder_->let_go(client);
  EXPECT_FALSE(released_);
  run_until_released();
  EXPECT_EQ(released_->work, WorkEnd::Unknown);
  EXPECT_FALSE(space_.is_open());
  EXPECT_THAT(describe(*released_), HasSubstr("let go"));
}

TEST_F(HolderTest, WorkThatIsKnownToRunOnIsHeldUntilSomebodyLetsGo) {
  give_all();
  hold(Nanoseconds(1), Nanoseconds(0));
  die();
  EXPECT_TRUE(holder_->keep(client));
  run_until([&] { return endless_.has_value(); });
  EXPECT_EQ(endless_, client);
  EXPECT_TRUE(holder_->held().front().endless);
  EXPECT_TRUE(space_.is_open());
  EXPECT_FALSE(released_);
  holder_->let_go(client);
  run_until_released();
  EXPECT_EQ(released_->work, WorkEnd::Forced);
  EXPECT_FALSE(space_.is_open());
  EXPECT_THAT(describe(*released_), HasSubstr("given up"));
}

TEST_F(HolderTest, AndGivenUpAtTheDeadline) {
  give_all();
  hold(Nanoseconds(1), Nanoseconds(0), Nanoseconds(1));
  die();
  EXPECT_TRUE(holder_->keep(client));
  run_until_released();
  EXPECT_EQ(released_->work, WorkEnd::Forced);
  EXPECT_FALSE(space_.is_open());
}

class KnownWork : public HolderTest {
 protected:
  KnownWork() {
    read_ = [this] {
      ++reads_;
      return work_;
    };
  }
  void hold_dead(Nanoseconds time, Nanoseconds longest = never) {
    give_all();
    hold(time, never, longest);
    die();
    EXPECT_TRUE(holder_->keep(client));
  }
  void run_until_read(int times) {
    run_until([&] { return reads_ >= times; });
  }
  WorkState work_ = WorkState::Running;
  int reads_ = 0;
};

TEST_F(KnownWork, ThatHasEndedIsLetGoAtOnce) {
  work_ = WorkState::Ended;
  hold_dead(never);
  EXPECT_FALSE(released_);
  run_until_released();
  EXPECT_EQ(released_->work, WorkEnd::Known);
  EXPECT_TRUE(is_safe(released_->work));
  EXPECT_FALSE(space_.is_open());
  EXPECT_THAT(describe(*released_), HasSubstr("its last kernels are known to have ended"));
}

TEST_F(KnownWork, ThatRunsIsHeldUntilItEnds) {
  hold_dead(never);
  run_until_read(3);
  EXPECT_TRUE(space_.is_open());
  EXPECT_EQ(holder_->held().front().work, WorkState::Running);
  work_ = WorkState::Ended;
  run_until_released();
  EXPECT_EQ(released_->work, WorkEnd::Known);
}

TEST_F(KnownWork, ThatRunsForLongIsSaidToAndHeldAllTheSame) {
  hold_dead(Nanoseconds(1));
  run_until([&] { return endless_.has_value(); });
  EXPECT_TRUE(space_.is_open());
  EXPECT_TRUE(holder_->held().front().endless);
  work_ = WorkState::Ended;
  run_until_released();
  EXPECT_EQ(released_->work, WorkEnd::Known);
}

TEST_F(KnownWork, ThatRunsForTooLongIsGivenUp) {
  hold_dead(Nanoseconds(1), Nanoseconds(1));
  run_until_released();
  EXPECT_TRUE(endless_.has_value());
  EXPECT_EQ(released_->work, WorkEnd::Forced);
}

TEST_F(KnownWork, OfWhichNothingIsKnownIsHeldForATime) {
  work_ = WorkState::Unknown;
  hold_dead(Nanoseconds(1));
  run_until_released();
  EXPECT_EQ(released_->work, WorkEnd::Presumed);
  EXPECT_FALSE(endless_.has_value());
}

TEST_F(KnownWork, IsWaitedForBySomebodyPatient) {
  hold_dead(never);
  holder_->let_go(client, never);
  run_until_read(3);
  EXPECT_TRUE(space_.is_open());
  work_ = WorkState::Ended;
  run_until_released();
  EXPECT_EQ(released_->work, WorkEnd::Known);
}

TEST_F(KnownWork, IsNotWaitedForLongerThanThat) {
  hold_dead(never);
  holder_->let_go(client, Nanoseconds(1));
  run_until_released();
  EXPECT_EQ(released_->work, WorkEnd::Unknown);
  EXPECT_FALSE(is_safe(released_->work));
}

// The manager's would be waited for.
TEST_F(KnownWork, ThatIsLetGoWhileItRunsLosesItsAddressSpaceFirst) {
  bool space_was_open = true;
  os::FakeDevice device;
  device.close = [&](const os::Fd&) { space_was_open = space_.is_open(); };
  kernel_.set_device("/dev/nvidiactl", device);
  hold_dead(never);
  holder_->let_go(client);
  run_until_released();
  EXPECT_FALSE(space_was_open);
}

TEST_F(KnownWork, IsWaitedForByNobodyWhereItIsNotKnown) {
  work_ = WorkState::Unknown;
  hold_dead(never);
  holder_->let_go(client, never);
  run_until_released();
  EXPECT_EQ(released_->work, WorkEnd::Unknown);
}

TEST_F(HolderTest, WhoNeverOpenedTheGpuIsNotHeld) {
  give(5, "/dev/null", mapping_);
  hold(never);
  EXPECT_TRUE(holder_->held().empty());
  die();
  EXPECT_FALSE(holder_->keep(client));
}

TEST_F(HolderTest, DescriptorsThatComeLaterAreHeldToo) {
  hold(never);
  give_all();
  run_until([&] { return !holder_->held().empty(); });
  die();
  EXPECT_TRUE(space_.is_open());
  EXPECT_TRUE(holder_->keep(client));
}

// A look may fall between the two: without the manager's, nobody would wait for its work.
TEST_F(HolderTest, WhoHasOpenedOnlyAPartIsLookedAtAgainSoon) {
  longest_look_ = never;
  hold(never);
  for (int looks = 0; looks < 40; ++looks) holder_->look(client);  // looks are an hour apart by now
  give(4, "/dev/nvidia-uvm", space_);
  holder_->look(client);
  EXPECT_TRUE(holder_->held().empty());
  give(3, "/dev/nvidiactl", manager_);
  run_until([&] { return !holder_->held().empty(); });
  die();
  EXPECT_TRUE(holder_->keep(client));
  EXPECT_TRUE(manager_.is_open());
}

TEST_F(HolderTest, WhatTheProcessClosesIsNotKept) {
  give_all();
  give(6, "/dev/nvidiactl", mapping_);
  hold(Nanoseconds(1));
  EXPECT_TRUE(mapping_.is_open());
  kernel_.take_descriptor(client, 6);
  holder_->look(client);
  run_until_released();
  EXPECT_FALSE(mapping_.is_open());
  EXPECT_TRUE(manager_.is_open());
}

TEST_F(HolderTest, OfOneThatOpensAndClosesAllTheTimeNoMoreIsHeldThanOfOthers) {
  hold(never);
  const std::size_t most = HolderOptions().most_closings;
  std::vector<Watched> spaces(most + 10);
  for (std::size_t i = 0; i < spaces.size(); ++i) {
    give(4, "/dev/nvidia-uvm", spaces[i]);
    holder_->look(client);
    EXPECT_EQ(holder_->lacks(client), i >= most) << i;
    kernel_.take_descriptor(client, 4);
    holder_->look(client);
    EXPECT_EQ(spaces[i].is_open(), i < most) << i;
  }
  EXPECT_EQ(holder_->held().size(), most);
}

TEST_F(HolderTest, WhatItHasClosedCounts) {
  hold(never);
  std::vector<Watched> files(Duplicates::most_of_a_process + 20);
  for (std::size_t i = 0; i < files.size(); ++i) give(static_cast<int>(100 + i), "/dev/nvidiactl", files[i]);
  const auto held = [&] { return std::ranges::count_if(files, &Watched::is_open); };
  const auto look_often = [&] {
    for (int looks = 0; looks < 20; ++looks) holder_->look(client);
  };
  look_often();
  for (int number = 100; number < 200; ++number) kernel_.take_descriptor(client, number);
  look_often();
  // 100 that it has closed, and of the others as many as are missing to the most; the rest it has itself.
  EXPECT_EQ(holder_->held().size(), 1U) << "what was closed at once is one";
  kernel_.exit_process(client, {});
  EXPECT_EQ(held(), static_cast<std::ptrdiff_t>(Duplicates::most_of_a_process));
}

TEST_F(HolderTest, WhoOpensAndClosesAllTheTimeIsHeldAgainOnceWhatItHasClosedIsReleased) {
  hold(Nanoseconds(1));
  std::vector<Watched> spaces(HolderOptions().most_closings + 1);
  for (Watched& space : spaces) {
    give(4, "/dev/nvidia-uvm", space);
    holder_->look(client);
    kernel_.take_descriptor(client, 4);
    holder_->look(client);
  }
  give_all();
  run_until([&] { return holder_->held().size() == 1 && !holder_->held().front().dead; });
  EXPECT_FALSE(holder_->lacks(client));
}

// A process opens a device, closes it, and opens it again: CUDA does, when it starts.
TEST_F(HolderTest, ANumberThatMeansAnotherFileIsTakenAnew) {
  Watched later;
  give_all();
  hold(Nanoseconds(1));
  kernel_.take_descriptor(client, 4);
  give(4, "/dev/nvidia-uvm", later);
  holder_->look(client);
  run_until_released();
  EXPECT_FALSE(space_.is_open());
  die();
  EXPECT_TRUE(later.is_open());
  EXPECT_TRUE(manager_.is_open());
  EXPECT_TRUE(holder_->keep(client));
}

// Descriptors that it had closed itself are let go by a thread of its own.
TEST_F(HolderTest, IsReleasedWhenNothingOfItIsLeft) {
  give_all();
  give(6, "/dev/nvidiactl", mapping_);
  hold(never);
  kernel_.take_descriptor(client, 6);
  holder_->look(client);
  die();
  EXPECT_TRUE(holder_->keep(client));
  EXPECT_EQ(holder_->held().size(), 2u);
  holder_->let_go(client);
  run_until_released();
  EXPECT_EQ(left_at_release_, 0u);
  EXPECT_EQ(released_->work, WorkEnd::Unknown);
}

TEST_F(HolderTest, WhoBecomesAnotherProgramIsReleasedAsWell) {
  give_all();
  hold(Nanoseconds(1));
  for (const int number : {3, 4, 5}) kernel_.take_descriptor(client, number);
  EXPECT_TRUE(space_.is_open());
  holder_->look(client);
  run_until_released();
  EXPECT_EQ(released_->work, WorkEnd::Presumed);
  EXPECT_FALSE(space_.is_open());
  die();
  EXPECT_FALSE(holder_->keep(client));
}

TEST_F(HolderTest, WhatMayNotBeDuplicatedIsNotHeld) {
  kernel_.refuse_pidfd_getfd(Error{ErrorCode::PermissionDenied, "not yours", {}});
  give_all();
  hold(never);
  EXPECT_TRUE(holder_->held().empty());
  die();
  EXPECT_FALSE(holder_->keep(client));
}

}  // namespace
}  // namespace firebreak::hold
