// SPDX-License-Identifier: Apache-2.0
/// While core dumps hold a domain, kernels that share the multiprocessor of the exception stand still, and
/// what ends that. With real processes.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "softgpu/machine/halted_multiprocessor.h"
#include "tests/softgpu_driver/core_dumps.h"

namespace firebreak::test {
namespace {

using softgpu::multiprocessors;

/// Eight on each multiprocessor.
constexpr std::uint32_t blocks = 8 * multiprocessors;

class HaltedMultiprocessors : public CoreDumps {
 protected:
  HaltedMultiprocessors() { halt_ms_ = "endless"; }

  /// Its memory as seen from here. It launches later.
  Sweeper start_large() {
    Sweeper large;
    large.client = start("large");
    large.descriptor = std::move(large.client->ask("export").descriptor);
    large.memory = os::Mapping::of_file(large.descriptor.get(), 1 << 20, os::Protection::ReadWrite).value();
    return large;
  }
  /// Returns when its kernel is on the GPU.
  static void launch(Sweeper& large) {
    EXPECT_EQ(large.client->tell("launch_blocks " + std::to_string(blocks) + " gated"), CUDA_SUCCESS);
    EXPECT_TRUE(eventually([&] { return large.word(2048) == 1; }));
    large.client->send("sync");
  }
  /// Its kernel's blocks come to their end from now on.
  static void open_gate(const Sweeper& large) {
    std::atomic_ref(*static_cast<std::uint32_t*>(large.memory.data())).store(1);
  }
  static std::vector<std::uint32_t> unfinished(const Sweeper& large) {
    std::vector<std::uint32_t> all;
    for (std::uint32_t block = 0; block < blocks; ++block) {
      if (large.word(block + 1) == 0) all.push_back(block);
    }
    return all;
  }
  /// All its blocks have ended but those on one multiprocessor.
  bool stands_still(const Sweeper& large) {
    return eventually([&] { return halted_kernels().stood_still == 1; }) && has_blocks_of_one(large);
  }
  static bool has_blocks_of_one(const Sweeper& large) {
    const std::vector<std::uint32_t> left = unfinished(large);
    if (left.size() != blocks / multiprocessors) return false;
    return std::ranges::all_of(
        left, [&](std::uint32_t block) { return block % multiprocessors == left.front() % multiprocessors; });
  }
  softgpu::HaltedKernels halted_kernels() const {
    return softgpu::SharedGpu::open(state_directory()).value()->halted_kernels();
  }
  void start_other_domain() {
    start_mps("b");
    other_ = start_sweeper();
  }
  bool has_been_reset() {
    const auto lines = log();
    return std::ranges::any_of(lines,
                               [](const auto& line) { return line.text.find(": 43,") != std::string::npos; });
  }

 private:
  Sweeper other_;
};

TEST_F(HaltedMultiprocessors, ALargeKernelStandsStillUntilTheGpuTakesATurnForAnotherDomain) {
  start_mps();
  const auto faulter = start("faulter");
  const auto unread = start_unread("unread");
  Sweeper large = start_large();
  const Sweeper small = sweep(start("small"));
  launch(large);
  ASSERT_EQ(faulter->tell("launch misaligned"), CUDA_SUCCESS);
  ASSERT_TRUE(is_complete("large"));
  open_gate(large);
  ASSERT_TRUE(stands_still(large));
  EXPECT_TRUE(goes_on(small)) << "it is not on that multiprocessor";
  ASSERT_TRUE(has_blocks_of_one(large));

  start_other_domain();
  EXPECT_EQ(large.client->take_answer().result, CUDA_SUCCESS);
  EXPECT_EQ(unfinished(large).size(), 0u);
  EXPECT_EQ(halted_kernels().thawed, 1u);
  EXPECT_FALSE(has_been_reset());
  drain("unread");
  EXPECT_TRUE(eventually([&] { return faulter->tell("sync") == CUDA_ERROR_MISALIGNED_ADDRESS; }));
}

TEST_F(HaltedMultiprocessors, ASmallKernelOnItStandsStill) {
  start_mps();
  const auto faulter = start("faulter");
  const Sweeper small = sweep(start("small"));
  const auto unread = start_unread("unread");
  std::uint32_t block = 0;  // the faulter's that lies where the other's only one does
  while (softgpu::multiprocessor_of(0, block) != softgpu::multiprocessor_of(1, 0)) ++block;
  const std::string which = std::to_string(block);
  ASSERT_EQ(faulter->tell("launch_blocks " + std::to_string(block + 1) + " trap_in_block " + which),
            CUDA_SUCCESS);
  ASSERT_TRUE(is_complete("small"));
  ASSERT_TRUE(eventually([&] { return halted_kernels().stood_still == 1; }));
  EXPECT_TRUE(CoreDumps::stands_still(small));
  start_other_domain();
  EXPECT_TRUE(goes_on(small));
}

TEST_F(HaltedMultiprocessors, WhatIsLaunchedSinceIsNotThere) {
  start_mps();
  const auto faulter = start("faulter");
  const auto unread = start_unread("unread");
  Sweeper large = start_large();
  open_gate(large);
  ASSERT_EQ(faulter->tell("launch misaligned"), CUDA_SUCCESS);
  ASSERT_TRUE(is_complete("large"));
  launch(large);
  EXPECT_EQ(large.client->take_answer().result, CUDA_SUCCESS);
  EXPECT_EQ(halted_kernels().stood_still, 0u);
}

TEST_F(HaltedMultiprocessors, TheLimitLetsThemGoOnWithoutATurn) {
  halt_ms_ = "1";
  start_mps();
  const auto faulter = start("faulter");
  const auto unread = start_unread("unread");
  Sweeper large = start_large();
  launch(large);
  ASSERT_EQ(faulter->tell("launch misaligned"), CUDA_SUCCESS);
  ASSERT_TRUE(is_complete("large"));
  open_gate(large);
  EXPECT_EQ(large.client->take_answer().result, CUDA_SUCCESS);
  EXPECT_EQ(unfinished(large).size(), 0u);
  EXPECT_EQ(halted_kernels().thawed, 0u);
  EXPECT_FALSE(has_been_reset());
}

TEST_F(HaltedMultiprocessors, TheResetEndsTheirKernels) {
  start_mps();
  const auto faulter = start("faulter");
  const auto unread = start_unread("unread");
  Sweeper large = start_large();
  launch(large);
  ASSERT_EQ(faulter->tell("launch misaligned"), CUDA_SUCCESS);
  ASSERT_TRUE(is_complete("large"));
  open_gate(large);
  ASSERT_TRUE(stands_still(large));
  drain("unread");
  EXPECT_EQ(large.client->take_answer().result, CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_TRUE(has_blocks_of_one(large)) << "they have not run";
  EXPECT_EQ(halted_kernels().thawed, 0u);
}

}  // namespace
}  // namespace firebreak::test
