// SPDX-License-Identifier: Apache-2.0
/// Calls that a thread is in, and how it may leave them.
#include "program/virtual/inside_call.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>

#include <array>
#include <functional>
#include <thread>

#include "program/virtual/gate.h"

namespace firebreak::virtual_driver {
namespace {

bool may_be_cancelled() {
  const int state = os::forbid_cancellation();
  os::restore_cancellation(state);
  return state == PTHREAD_CANCEL_ENABLE;
}

/// Calls `act` in a call into the driver.
[[gnu::noinline]] void call(Gate& gate, const std::function<void()>& act) {
  const InsideCall inside;
  const Pass pass(gate);
  act();
}

/// The same, with its frame far below.
[[gnu::noinline]] void call_deep(Gate& gate, const std::function<void()>& act) {
  std::array<volatile char, 65536> below;
  for (std::size_t i = 0; i < below.size(); ++i) below[i] = 1;
  call(gate, act);
}

TEST(InsideCall, IsSoInACallAndInOneWithinIt) {
  Gate gate;
  EXPECT_FALSE(InsideCall::active());
  EXPECT_TRUE(may_be_cancelled());
  call(gate, [&] {
    EXPECT_TRUE(InsideCall::active());
    call(gate, [&] { EXPECT_FALSE(may_be_cancelled()); });
    EXPECT_TRUE(InsideCall::active());
    EXPECT_FALSE(may_be_cancelled());
  });
  EXPECT_FALSE(InsideCall::active());
  EXPECT_TRUE(may_be_cancelled());
}

/// A thread that has left a call by a jump, and calls again by `next`.
void jump_and_call(Gate& gate, void (*next)(Gate&, const std::function<void()>&)) {
  std::thread thread([&] {
    static thread_local sigjmp_buf place;
    if (sigsetjmp(place, 1) == 0) call(gate, [] { siglongjmp(place, 1); });
    next(gate, [] { EXPECT_TRUE(InsideCall::active()); });
    EXPECT_FALSE(InsideCall::active());
    EXPECT_TRUE(may_be_cancelled());
    EXPECT_TRUE(gate.close(Milliseconds(0))) << "it was inside for ever, so that nothing moved the program";
    gate.open();
  });
  thread.join();
}

TEST(InsideCall, WhoHasLeftByAJumpIsOutsideFromItsNextCallOn) {
  Gate gate;
  jump_and_call(gate, &call);
  jump_and_call(gate, &call_deep);
}

TEST(InsideCall, WhoHasLeftByAJumpIsOutsideOnceItsThreadHasEnded) {
  Gate gate;
  std::thread thread([&] {
    static thread_local sigjmp_buf place;
    if (sigsetjmp(place, 1) == 0) call(gate, [] { siglongjmp(place, 1); });
  });
  thread.join();
  EXPECT_TRUE(gate.close(Milliseconds(0)));
  gate.open();
}

/// Its stack may lie anywhere.
TEST(InsideCall, AHandlerWithAStackOfItsOwnDoesNotEndTheCall) {
  static Gate gate;
  std::array<char, 65536> above_all;
  std::thread thread([&] {
    const stack_t own{above_all.data(), 0, above_all.size()};
    ASSERT_EQ(sigaltstack(&own, nullptr), 0);
    struct sigaction handler {};
    handler.sa_flags = SA_ONSTACK;
    handler.sa_handler = [](int) { call(gate, [] {}); };
    ASSERT_EQ(sigaction(SIGUSR2, &handler, nullptr), 0);
    call(gate, [] {
      pthread_kill(pthread_self(), SIGUSR2);
      EXPECT_TRUE(InsideCall::active());
      EXPECT_FALSE(may_be_cancelled());
    });
    EXPECT_TRUE(gate.close(Milliseconds(0)));
    gate.open();
  });
  thread.join();
}

}  // namespace
}  // namespace firebreak::virtual_driver
