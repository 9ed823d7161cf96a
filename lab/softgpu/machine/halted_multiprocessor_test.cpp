// SPDX-License-Identifier: Apache-2.0
#include "softgpu/machine/halted_multiprocessor.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "ground/os/file.h"
#include "ground/os/self.h"

namespace firebreak::softgpu {
namespace {

constexpr HaltRules endless{std::nullopt, 1};
constexpr std::uint32_t halted = 40;
constexpr pid_t other_domain = 77;

TEST(Multiprocessors, SmallKernelsOfAFewClientsShareNone) {
  constexpr std::uint32_t clients = 4, blocks = 31;
  std::set<std::uint32_t> taken;
  for (std::uint32_t slot = 0; slot < clients; ++slot) {
    for (std::uint32_t block = 0; block < blocks; ++block) taken.insert(multiprocessor_of(slot, block));
  }
  EXPECT_EQ(taken.size(), clients * blocks);
}

TEST(Multiprocessors, NoTwoClientsBeginOnTheSame) {
  std::set<std::uint32_t> first;
  for (std::uint32_t slot = 0; slot < DomainPage::client_count_max; ++slot)
    first.insert(multiprocessor_of(slot, 0));
  EXPECT_EQ(first.size(), DomainPage::client_count_max);
}

TEST(Multiprocessors, ALargeKernelIsOnEach) {
  std::set<std::uint32_t> taken;
  for (std::uint32_t block = 0; block < multiprocessors; ++block) taken.insert(multiprocessor_of(5, block));
  EXPECT_EQ(taken.size(), multiprocessors);
}

class HaltedMultiprocessor : public ::testing::Test {
 protected:
  void hold(std::int64_t dumps_due_ns = now_ns()) {
    DomainHold exception;
    exception.faulter_slot = slot_;
    exception.exception.multiprocessor = halted;
    exception.dumps_due_ns = dumps_due_ns;
    gpu_->take_turn(domain_->owner());
    exception.switches = gpu_->switches();
    EXPECT_TRUE(domain_->hold(exception));
  }
  bool is_halted(const HaltRules& rules = endless, std::uint32_t multiprocessor = halted) const {
    return softgpu::is_halted(*gpu_, *domain_, rules, multiprocessor);
  }

  os::TemporaryDirectory directory_ = os::TemporaryDirectory::create().value();
  std::shared_ptr<SharedGpu> gpu_ = SharedGpu::open(directory_.path() + "/gpu").value();
  std::shared_ptr<Domain> domain_ = Domain::create(os::own_pid()).value();
  std::uint32_t slot_ = domain_->join(os::own_pid()).value();
};

TEST_F(HaltedMultiprocessor, IsTheOneOfTheException) {
  EXPECT_FALSE(is_halted());
  hold();
  EXPECT_TRUE(is_halted());
  EXPECT_FALSE(is_halted(endless, halted + 1));
}

TEST_F(HaltedMultiprocessor, IsSoUntilAnotherDomainHasATurn) {
  hold();
  gpu_->take_turn(domain_->owner());
  EXPECT_TRUE(is_halted()) << "its own is none";
  gpu_->take_turn(other_domain);
  EXPECT_FALSE(is_halted());
  gpu_->take_turn(domain_->owner());
  EXPECT_FALSE(is_halted());
}

TEST_F(HaltedMultiprocessor, IsSoWhateverTurnsThereWereBefore) {
  gpu_->take_turn(other_domain);
  gpu_->take_turn(domain_->owner());
  gpu_->take_turn(other_domain);
  hold();
  EXPECT_TRUE(is_halted());
  gpu_->take_turn(other_domain);
  EXPECT_FALSE(is_halted()) << "the other one had the last turn before it, too";
}

TEST_F(HaltedMultiprocessor, IsSoUntilTheLimit) {
  hold(now_ns() - 1'000);
  EXPECT_FALSE(is_halted({1'000, 1}));
  EXPECT_TRUE(is_halted({std::int64_t{1} << 60, 1}));
}

TEST_F(HaltedMultiprocessor, IsSoUntilTheDomainFalls) {
  hold();
  DomainFault fault;
  fault.faulter_slot = slot_;
  ASSERT_TRUE(domain_->raise(fault));
  EXPECT_FALSE(is_halted());
}

}  // namespace
}  // namespace firebreak::softgpu
