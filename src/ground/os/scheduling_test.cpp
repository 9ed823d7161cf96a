// SPDX-License-Identifier: Apache-2.0
#include "ground/os/self.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <thread>

#include "ground/os/broker.h"

namespace firebreak::os {
namespace {

int policy_of_this_thread() { return ::sched_getscheduler(0) & ~SCHED_RESET_ON_FORK; }

/// Returns the best policy that a thread of this process can have.
int best_policy() {
  int best = SCHED_OTHER;
  std::thread([&best] {
    sched_param parameter{};
    parameter.sched_priority = 1;
    if (::sched_setscheduler(0, SCHED_FIFO, &parameter) == 0) best = SCHED_FIFO;
  }).join();
  return best;
}

TEST(Scheduling, APromptThreadHasTheBestPolicyAndWhatItStartsIsOrdinary) {
  int ours = -1, theirs = -1;
  Status done;
  std::thread([&] {
    done = run_as_soon_as_woken();
    ours = policy_of_this_thread();
    std::thread([&] { theirs = policy_of_this_thread(); }).join();
  }).join();
  EXPECT_EQ(ours, best_policy());
  EXPECT_EQ(theirs, SCHED_OTHER);
  EXPECT_TRUE(done || done.error().code == ErrorCode::Unsupported);
}

/// Returns the turn of this thread; 0: an older kernel, or an ordinary thread.
std::uint64_t turn_ns() {
  struct {
    std::uint32_t size = 48, policy = 0;
    std::uint64_t flags = 0;
    std::int32_t nice = 0;
    std::uint32_t priority = 0;
    std::uint64_t runtime_ns = 0, deadline_ns = 0, period_ns = 0;
  } attributes;
  return ::syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) == 0 ? attributes.runtime_ns : 0;
}

TEST(Scheduling, AThreadInShortTurnsIsOrdinaryAndItsTurnsAreShort) {
  std::thread([] {
    const std::uint64_t before_ns = turn_ns();
    const Status done = run_in_short_turns();
    EXPECT_EQ(policy_of_this_thread(), SCHED_OTHER);
    EXPECT_EQ(turn_ns() < before_ns, done.has_value()) << "Linux says so from 6.12 on";
  }).join();
}

TEST(Scheduling, WhoLooksForOthersDoesSoInShortTurns) {
  auto ends = socket_pair().value();
  std::uint64_t ordinary_ns = 0, its_ns = 0;
  std::thread helper([&] {
    ordinary_ns = turn_ns();
    serve_looks(ends.second, {});
    its_ns = turn_ns();
  });
  ends.first.hang_up();
  helper.join();
  bool are_there = false;
  std::thread([&] { are_there = run_in_short_turns().has_value(); }).join();
  EXPECT_EQ(its_ns < ordinary_ns, are_there);
}

}  // namespace
}  // namespace firebreak::os
