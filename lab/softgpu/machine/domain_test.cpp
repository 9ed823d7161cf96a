// SPDX-License-Identifier: Apache-2.0
#include "softgpu/machine/domain.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <limits>
#include <thread>

#include "ground/os/memory.h"
#include "ground/os/self.h"

namespace firebreak::softgpu {
namespace {

DomainFault fault_of_slot(std::uint32_t slot, CUresult error) { return {error, slot, 1, 2, 3}; }

TEST(Domain, FirstFaultStays) {
  const auto domain = Domain::create(0).value();
  const auto one = domain->join(11).value();
  const auto two = domain->join(22).value();
  EXPECT_TRUE(domain->healthy());
  EXPECT_TRUE(domain->raise(fault_of_slot(one, CUDA_ERROR_ILLEGAL_ADDRESS)));
  EXPECT_FALSE(domain->raise(fault_of_slot(two, CUDA_ERROR_LAUNCH_FAILED)));
  for (const std::uint32_t slot : {one, two}) {
    ASSERT_TRUE(domain->fault_of(slot));
    EXPECT_EQ(domain->fault_of(slot)->error, CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(domain->fault_of(slot)->faulter_slot, one);
  }
}

TEST(Domain, FaultOfOneAloneLeavesTheOthers) {
  const auto domain = Domain::create(0).value();
  const auto one = domain->join(11).value();
  const auto two = domain->join(22).value();
  EXPECT_TRUE(domain->raise_alone(fault_of_slot(one, CUDA_ERROR_LAUNCH_FAILED)));
  EXPECT_TRUE(domain->is_faulted(one));
  EXPECT_FALSE(domain->is_faulted(two));
  EXPECT_FALSE(domain->fault_of(two));
  domain->leave(one);
  EXPECT_FALSE(domain->is_faulted(domain->join(33).value()));
}

TEST(Domain, IsQuietOnceNobodyWhoLivesWrites) {
  const auto domain = Domain::create(1).value();
  const std::uint32_t ours = domain->join(os::own_pid()).value();
  const std::uint32_t dead = domain->join(std::numeric_limits<std::int32_t>::max()).value();
  EXPECT_TRUE(domain->is_quiet());
  domain->begin_work(dead);
  EXPECT_TRUE(domain->is_quiet());
  domain->begin_work(ours);
  EXPECT_FALSE(domain->is_quiet());
  domain->wait_until_quiet(std::chrono::milliseconds(0));
  std::thread work([&] { domain->end_work(ours); });
  domain->wait_until_quiet(std::chrono::hours(1));
  EXPECT_TRUE(domain->is_quiet());
  work.join();
}

TEST(Domain, AFaultIsToldOnceTheLogHasItOrNobodyIsLeftToTell) {
  const auto domain = Domain::create(1).value();
  EXPECT_TRUE(domain->is_told());
  const std::uint32_t ours = domain->join(os::own_pid()).value();
  ASSERT_TRUE(domain->raise({CUDA_ERROR_LAUNCH_FAILED, ours, 0, 0, 0, 0}));
  EXPECT_FALSE(domain->is_told());
  domain->mark_told();
  EXPECT_TRUE(domain->is_told());

  const auto another = Domain::create(1).value();
  const pid_t child = ::fork();
  if (child == 0) {
    another->raise({CUDA_ERROR_LAUNCH_FAILED, another->join(os::own_pid()).value(), 0, 0, 0, 0});
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(another->healthy());
  EXPECT_TRUE(another->is_told());
}

DomainHold hold_of(std::uint32_t slot) {
  DomainHold hold;
  hold.faulter_slot = slot;
  hold.exception.number = slot;
  return hold;
}

TEST(Domain, IsHeldUntilAllWhoLiveAndAreInTheModeHaveDumped) {
  const auto domain = Domain::create(1).value();
  const std::uint32_t outside = domain->join(os::own_pid()).value();
  const std::uint32_t faulter = domain->join(os::own_pid()).value();
  const std::uint32_t other = domain->join(os::own_pid()).value();
  const std::uint32_t dead = domain->join(std::numeric_limits<std::int32_t>::max()).value();
  domain->want_core_dump(dead);
  EXPECT_FALSE(domain->has_core_dumps());
  domain->want_core_dump(faulter);
  domain->want_core_dump(other);
  EXPECT_TRUE(domain->has_core_dumps());
  EXPECT_FALSE(domain->stands_still(other));

  ASSERT_TRUE(domain->hold(hold_of(faulter)));
  EXPECT_FALSE(domain->hold(hold_of(other)));
  ASSERT_TRUE(domain->hold());
  EXPECT_EQ(domain->hold()->exception.number, faulter);
  domain->finish_core_dump(faulter);
  EXPECT_FALSE(domain->stands_still(faulter));
  EXPECT_TRUE(domain->stands_still(other));
  EXPECT_TRUE(domain->stands_still(outside));
  EXPECT_FALSE(domain->is_hold_over());
  domain->finish_core_dump(other);
  EXPECT_TRUE(domain->is_hold_over());

  ASSERT_TRUE(domain->raise(fault_of_slot(faulter, CUDA_ERROR_ILLEGAL_ADDRESS)));
  EXPECT_FALSE(domain->is_held());
  EXPECT_FALSE(domain->hold());
  EXPECT_FALSE(domain->stands_still(outside));
}

TEST(Domain, IsNotHeldForAFaulterThatHasEnded) {
  for (const bool ended : {false, true}) {
    const auto domain = Domain::create(1).value();
    const std::uint32_t other = domain->join(os::own_pid()).value();
    const std::uint32_t faulter = domain->join(os::own_pid()).value();
    domain->want_core_dump(other);
    ASSERT_TRUE(domain->hold(hold_of(faulter)));
    EXPECT_FALSE(domain->is_hold_over());
    ended ? domain->leave(faulter) : domain->terminate(faulter);
    EXPECT_TRUE(domain->is_hold_over());
    EXPECT_TRUE(domain->is_held());
    // The client has had a fault of its own all the same.
    domain->raise_alone(fault_of_slot(faulter, CUDA_ERROR_LAUNCH_FAILED));
    EXPECT_TRUE(domain->raise(fault_of_slot(faulter, CUDA_ERROR_MISALIGNED_ADDRESS)));
    EXPECT_FALSE(domain->is_held());
  }
}

TEST(Domain, IsNotHeldOnceItHasFaulted) {
  const auto domain = Domain::create(1).value();
  const std::uint32_t slot = domain->join(os::own_pid()).value();
  ASSERT_TRUE(domain->raise(fault_of_slot(slot, CUDA_ERROR_ILLEGAL_ADDRESS)));
  EXPECT_FALSE(domain->hold(hold_of(slot)));
  EXPECT_FALSE(domain->is_held());
}

TEST(Domain, IsFullAtTheLimitAndSeenThroughItsDescriptor) {
  const auto domain = Domain::create(99).value();
  for (std::size_t i = 0; i < DomainPage::client_count_max; ++i) ASSERT_TRUE(domain->join(1000));
  EXPECT_FALSE(domain->join(1));
  auto copy = os::create_memory_file("other", sizeof(DomainPage));
  ASSERT_TRUE(copy);
  const auto other = Domain::from(std::move(*copy));  // a file of the right size that is no domain
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::Protocol);
}

}  // namespace
}  // namespace firebreak::softgpu
