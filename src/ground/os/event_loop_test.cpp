// SPDX-License-Identifier: Apache-2.0
#include "ground/os/event_loop.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <thread>

#include "ground/os/fd.h"
#include "ground/os/file.h"
#include "ground/os/memory.h"
#include "ground/os/socket.h"

namespace firebreak::os {
namespace {

class EventLoopTest : public testing::Test {
 protected:
  EventLoopTest()
      : loop_(std::move(EventLoop::create().value())), event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  void raise() { ASSERT_EQ(::eventfd_write(event_.get(), 1), 0); }
  void lower() {
    eventfd_t value = 0;
    ASSERT_EQ(::eventfd_read(event_.get(), &value), 0);
  }
  void settle() {
    while (loop_->run_once(Milliseconds(0))) {
    }
  }

  std::unique_ptr<EventLoop> loop_;
  Fd event_;
};

TEST_F(EventLoopTest, CallsBackWhileADescriptorIsReadable) {
  int calls = 0;
  const Watch watch = loop_->watch_readable(event_.get(), [&] { ++calls; }).value();
  EXPECT_FALSE(loop_->run_once(Milliseconds(0)));
  raise();
  EXPECT_TRUE(loop_->run_once(std::nullopt));
  EXPECT_TRUE(loop_->run_once(std::nullopt));
  EXPECT_EQ(calls, 2);
  lower();
  EXPECT_FALSE(loop_->run_once(Milliseconds(0)));
}

TEST(EventLoopByAClock, TimersComeWhenItSaysSo) {
  FakeClock clock;
  const auto loop = std::move(EventLoop::create(&clock).value());
  std::string order;
  const Watch once = loop->after(std::chrono::seconds(2), [&] { order += "once "; }).value();
  const Watch often = loop->every(std::chrono::seconds(1), [&] { order += "often "; }).value();
  EXPECT_FALSE(loop->run_once(Milliseconds(0)));
  clock.advance(std::chrono::seconds(1));
  EXPECT_TRUE(loop->run_once(Milliseconds(0)));
  EXPECT_FALSE(loop->run_once(Milliseconds(0)));
  EXPECT_EQ(order, "often ");
  clock.advance(std::chrono::hours(1));
  EXPECT_TRUE(loop->run_once(Milliseconds(0)));
  EXPECT_FALSE(loop->run_once(Milliseconds(0)));
  EXPECT_EQ(order, "often once often ");
}

TEST_F(EventLoopTest, SaysOfATurnThatItIsOverOnceAllOfItIsServed) {
  std::string order;
  const Watch watch = loop_->watch_readable(event_.get(), [&] { order += "served "; }).value();
  loop_->post([&] { order += "posted "; });
  raise();
  loop_->after_each_turn(
      [&](Nanoseconds took) { order += took >= Nanoseconds(0) ? "over" : "before it began"; });
  EXPECT_TRUE(loop_->run_once(std::nullopt));
  EXPECT_EQ(order.size(), std::string("served posted over").size()) << order;
  EXPECT_TRUE(order.ends_with("over")) << order;
  loop_->after_each_turn(nullptr);
  EXPECT_TRUE(loop_->run_once(std::nullopt));
  EXPECT_TRUE(order.ends_with("served ")) << order;
}

TEST_F(EventLoopTest, MuchThatWasPostedIsServedInOrderAndKeepsNothingElseWaiting) {
  std::string order;
  const Watch watch = loop_
                          ->watch_readable(event_.get(),
                                           [&] {
                                             order += "!";
                                             lower();
                                           })
                          .value();
  for (int i = 0; i < 9; ++i) {
    loop_->post([&, i] {
      order += std::to_string(i);
      for (const auto begun = SystemClock().now(); SystemClock().now() - begun < Milliseconds(10);) {
      }
    });
  }
  raise();
  settle();
  EXPECT_FALSE(order.ends_with("!")) << order;
  std::erase(order, '!');
  EXPECT_EQ(order, "012345678");
}

TEST_F(EventLoopTest, WhatComesFirstIsServedBeforeEachOfTheOthers) {
  std::string order;
  std::array<Fd, 3> others;
  std::array<Watch, 3> watches;
  for (std::size_t i = 0; i < others.size(); ++i) {
    others[i] = Fd(::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
    watches[i] = loop_->watch_readable(others[i].get(), [&] { raise(), order += "other "; }).value();
  }
  for (const char* posted : {"posted ", "posted "}) loop_->post([&, posted] { raise(), order += posted; });
  const Watch first = loop_->watch_first(event_.get(), [&] { lower(), order += "first "; }).value();
  EXPECT_TRUE(loop_->run_once(Milliseconds(0)));
  for (std::size_t at = order.find(' '); at != std::string::npos; at = order.find(' ', at + 1)) {
    const std::string before = order.substr(0, at);
    if (before.ends_with("first") || at + 1 == order.size()) continue;
    EXPECT_EQ(order.substr(at + 1, 5), "first") << order;
  }
  EXPECT_NE(order.find("first"), std::string::npos) << order;
}

TEST_F(EventLoopTest, WhatComesFirstWakesAndCanBeTakenAway) {
  int calls = 0;
  Watch first = loop_->watch_first(event_.get(), [&] { ++calls; }).value();
  EXPECT_FALSE(loop_->run_once(Milliseconds(0)));
  raise();
  EXPECT_TRUE(loop_->run_once(std::nullopt));
  EXPECT_EQ(calls, 1);
  first.cancel();
  EXPECT_FALSE(loop_->run_once(Milliseconds(0)));
  EXPECT_EQ(calls, 1);
}

TEST_F(EventLoopTest, OnlyWhatIsDoneInTheBackgroundIsPutOffForWhatComesFirst) {
  const Watch first = loop_->watch_first(event_.get(), [&] { lower(); }).value();
  std::vector<int> seen;
  loop_->post([&] {
    seen.push_back(loop_->urgent());
    const EventLoop::Background background(*loop_);
    const int urgent = loop_->urgent();
    seen.push_back(urgent);
    EXPECT_TRUE(poll_readable(std::span(&urgent, 1), Milliseconds(0)).value().empty()) << "nothing waits yet";
    raise();
    EXPECT_EQ(poll_readable(std::span(&urgent, 1), Milliseconds(0)).value().size(), 1U);
    std::thread([&] { seen.push_back(loop_->urgent()); }).join();
  });
  loop_->post([&] { seen.push_back(loop_->urgent()); });
  loop_->run_once(Milliseconds(0));
  ASSERT_EQ(seen.size(), 4U);
  EXPECT_EQ(seen[0], -1);
  EXPECT_GE(seen[1], 0);
  EXPECT_EQ(seen[2], -1) << "another thread is not kept from what it does";
  EXPECT_EQ(seen[3], -1) << "it has ended";
}

/// A perf event, as the bell of the kernel's log is one, says only once that it has rung.
TEST_F(EventLoopTest, WhatWhoAskedIfItIsUrgentHasTakenIsServedAllTheSame) {
  int calls = 0;
  const Watch first = loop_->watch_first(event_.get(), [&] { ++calls; }).value();
  loop_->post([&] {
    const EventLoop::Background background(*loop_);
    EXPECT_GE(loop_->urgent(), 0);
    raise();
    lower();
  });
  loop_->post([] {});
  loop_->run_once(Milliseconds(0));
  EXPECT_EQ(calls, 1);
}

TEST_F(EventLoopTest, SeesAHangUp) {
  auto [left, right] = socket_pair().value();
  int calls = 0;
  const Watch watch = loop_->watch_readable(right.fd().get(), [&] { ++calls; }).value();
  left.release().reset();
  EXPECT_TRUE(loop_->run_once(std::nullopt));
  EXPECT_EQ(calls, 1);
}

TEST_F(EventLoopTest, AWatchEndsWithItsObjectEvenInsideItsOwnCallback) {
  int calls = 0;
  Watch watch;
  watch = loop_
              ->watch_readable(event_.get(),
                               [&] {
                                 ++calls;
                                 watch.cancel();
                               })
              .value();
  raise();
  settle();
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(watch);
}

TEST_F(EventLoopTest, ACallbackMayCancelAnotherOneOfTheSameRound) {
  const Fd other(::eventfd(1, EFD_CLOEXEC));
  raise();
  int calls = 0;
  Watch first;
  Watch second;
  first = loop_->watch_readable(event_.get(), [&] { ++calls, first.cancel(), second.cancel(); }).value();
  second = loop_->watch_readable(other.get(), [&] { ++calls, first.cancel(), second.cancel(); }).value();
  settle();
  EXPECT_EQ(calls, 1);
}

TEST_F(EventLoopTest, ATimerFiresOnce) {
  int calls = 0;
  const Watch watch = loop_
                          ->after(Nanoseconds(0),
                                  [&] {
                                    ++calls;
                                    loop_->stop();
                                  })
                          .value();
  loop_->run();
  settle();
  EXPECT_EQ(calls, 1);
}

TEST_F(EventLoopTest, TimersFireInTheOrderOfTheirTimes) {
  std::string order;
  const Watch late = loop_
                         ->after(Milliseconds(20),
                                 [&] {
                                   order += "b";
                                   loop_->stop();
                                 })
                         .value();
  const Watch early = loop_->after(Milliseconds(1), [&] { order += "a"; }).value();
  loop_->run();
  EXPECT_EQ(order, "ab");
}

TEST_F(EventLoopTest, APeriodicTimerGoesOnUntilItIsCancelled) {
  int calls = 0;
  Watch watch;
  watch = loop_
              ->every(std::chrono::microseconds(100),
                      [&] {
                        if (++calls == 5) loop_->stop();
                      })
              .value();
  loop_->run();
  EXPECT_EQ(calls, 5);
  watch.cancel();
  settle();
  EXPECT_EQ(calls, 5);
}

TEST_F(EventLoopTest, ACancelledTimerNeverFires) {
  bool fired = false;
  Watch watch = loop_->after(Milliseconds(1), [&] { fired = true; }).value();
  watch.cancel();
  const Watch later = loop_->after(Milliseconds(10), [&] { loop_->stop(); }).value();
  loop_->run();
  EXPECT_FALSE(fired);
}

TEST_F(EventLoopTest, TimersTakeNoDescriptors) {
  const int lowest = duplicate(event_.get())->get();
  std::vector<Watch> timers;
  int calls = 0;
  for (int i = 0; i < 1000; ++i) timers.push_back(loop_->after(Nanoseconds(i), [&] { ++calls; }).value());
  EXPECT_EQ(duplicate(event_.get())->get(), lowest);
  timers.erase(timers.begin(), timers.begin() + 10);
  while (calls < 990) loop_->run_once(std::nullopt);
  EXPECT_FALSE(loop_->run_once(Milliseconds(0)));
}

TEST_F(EventLoopTest, ATimerMayStartAnotherThatIsDueAtOnce) {
  int calls = 0;
  Watch next;
  const Watch first = loop_
                          ->after(Nanoseconds(0),
                                  [&] {
                                    ++calls;
                                    next =
                                        loop_->after(Nanoseconds(0), [&] { ++calls, loop_->stop(); }).value();
                                  })
                          .value();
  loop_->run();
  EXPECT_EQ(calls, 2);
}

TEST_F(EventLoopTest, TellsWhenADescriptorCanBeWrittenToWhereItIsAskedTo) {
  auto [left, right] = socket_pair().value();
  int readable = 0, writable = 0;
  Watch watch = loop_
                    ->watch(
                        left.fd().get(), [&] { ++readable; }, [&] { ++writable; })
                    .value();
  EXPECT_FALSE(loop_->run_once(Milliseconds(0)));
  watch.expect_writable(true);
  EXPECT_TRUE(loop_->run_once(Milliseconds(0)));
  EXPECT_EQ(writable, 1);
  watch.expect_writable(false);
  EXPECT_FALSE(loop_->run_once(Milliseconds(0)));
  const std::byte one{1};
  ASSERT_TRUE(right.send(std::span(&one, 1), {}, Milliseconds(0)));
  EXPECT_TRUE(loop_->run_once(Milliseconds(0)));
  EXPECT_EQ(readable, 1);
  EXPECT_EQ(writable, 1);
}

TEST_F(EventLoopTest, RunsWhatOtherThreadsPostInOrder) {
  std::vector<int> seen;
  std::thread poster([&] {
    for (int i = 0; i < 100; ++i) loop_->post([&seen, i] { seen.push_back(i); });
    loop_->post([&] { loop_->stop(); });
  });
  loop_->run();
  poster.join();
  ASSERT_EQ(seen.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
}

TEST_F(EventLoopTest, AStopBeforeTheRunMakesItReturn) {
  loop_->stop();
  loop_->run();
  EXPECT_FALSE(loop_->run_once(Milliseconds(0)) && loop_->run_once(Milliseconds(0)));
}

TEST_F(EventLoopTest, APostedCallbackMayPostAgain) {
  int calls = 0;
  loop_->post([&] {
    ++calls;
    loop_->post([&] { ++calls, loop_->stop(); });
  });
  loop_->run();
  EXPECT_EQ(calls, 2);
}

TEST_F(EventLoopTest, TakesSignals) {
  sigset_t before;
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, nullptr, &before), 0);
  int seen = 0;
  {
    const Watch watch = loop_
                            ->on_signals({SIGUSR1, SIGUSR2},
                                         [&](int signal) {
                                           seen = signal;
                                           loop_->stop();
                                         })
                            .value();
    ASSERT_EQ(::raise(SIGUSR2), 0);
    loop_->run();
  }
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, &before, nullptr), 0);
  EXPECT_EQ(seen, SIGUSR2);
}

TEST_F(EventLoopTest, APlainFileCannotBeWatched) {
  const Fd file = memory_file_with("x").value();
  EXPECT_FALSE(loop_->watch_readable(-1, [] {}));
  const auto watch = loop_->watch_readable(file.get(), [] {});
  ASSERT_FALSE(watch);
  EXPECT_EQ(watch.error().code, ErrorCode::Unsupported);
}

TEST_F(EventLoopTest, MovesAWatch) {
  int calls = 0;
  Watch first = loop_->watch_readable(event_.get(), [&] { ++calls; }).value();
  Watch second = std::move(first);
  EXPECT_FALSE(first);
  raise();
  EXPECT_TRUE(loop_->run_once(Milliseconds(0)));
  second = Watch();
  EXPECT_FALSE(loop_->run_once(Milliseconds(0)));
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace firebreak::os
