// SPDX-License-Identifier: Apache-2.0
#include "agent/endings/hold/gpu_descriptors.h"

#include <gtest/gtest.h>

#include "ground/os/fd.h"
#include "ground/os/memory.h"
#include "tests/doubles/os/fake_kernel.h"

namespace firebreak::hold {
namespace {

TEST(DuplicatesTest, OfVeryManySoManyAreTakenAtOnceAndSoManyInAll) {
  constexpr pid_t pid = 4711;
  os::FakeKernel kernel;
  kernel.add_process(pid);
  const os::Fd file = os::create_memory_file("x", 0).value();
  for (int number = 0; number < 1'000; ++number)
    kernel.give_descriptor(pid, number, kernel.rm_link_target(), os::duplicate(file.get()).value());
  const os::Fd process = kernel.pidfd_open(pid).value();
  const Numbers now = gpu_descriptors_of(kernel, pid).value();
  ASSERT_EQ(now.size(), 1'000U);
  Duplicates duplicates;
  for (std::size_t looks = 1; looks <= 10; ++looks) {
    const Status taken = duplicates.take(kernel, process, now);
    ASSERT_FALSE(taken);
    EXPECT_EQ(taken.error().code, ErrorCode::ResourceExhausted);
    EXPECT_EQ(duplicates.size(),
              std::min(looks * Duplicates::most_at_once, std::size_t{Duplicates::most_of_a_process}));
  }
}

TEST(DuplicatesTest, OfWhatIsThereAllAreTakenInTheEnd) {
  constexpr pid_t pid = 4711;
  constexpr std::size_t many = Duplicates::most_at_once + 2;
  os::FakeKernel kernel;
  kernel.add_process(pid);
  const os::Fd file = os::create_memory_file("x", 0).value();
  for (std::size_t number = 0; number < many; ++number)
    kernel.give_descriptor(pid, static_cast<int>(number), kernel.rm_link_target(),
                           os::duplicate(file.get()).value());
  const os::Fd process = kernel.pidfd_open(pid).value();
  const Numbers now = gpu_descriptors_of(kernel, pid).value();
  Duplicates duplicates;
  EXPECT_FALSE(duplicates.take(kernel, process, now));
  EXPECT_TRUE(duplicates.take(kernel, process, now));
  EXPECT_EQ(duplicates.size(), many);
}

TEST(DuplicatesTest, OfManyThatAreHeldAPartIsComparedEachTime) {
  constexpr pid_t pid = 4711;
  constexpr int parts = 3;
  constexpr int many = parts * static_cast<int>(Duplicates::most_compared) - 1;
  os::FakeKernel kernel;
  kernel.add_process(pid);
  for (int number = 0; number < many; ++number)
    kernel.give_descriptor(pid, number, kernel.rm_link_target(), os::create_memory_file("x", 0).value());
  const os::Fd process = kernel.pidfd_open(pid).value();
  const Numbers now = gpu_descriptors_of(kernel, pid).value();
  Duplicates duplicates;
  while (!duplicates.take(kernel, process, now)) {
  }
  for (std::uint32_t turn = 0; turn < parts; ++turn) EXPECT_TRUE(duplicates.has_still(kernel, pid, turn));
  kernel.give_descriptor(pid, many / 2, kernel.rm_link_target(), os::create_memory_file("y", 0).value());
  int noticed = 0;
  for (std::uint32_t turn = 0; turn < parts; ++turn)
    noticed += duplicates.has_still(kernel, pid, turn) ? 0 : 1;
  EXPECT_EQ(noticed, 1);
  EXPECT_EQ(duplicates.give_back(kernel, pid, now).size(), 1U);
  EXPECT_EQ(duplicates.size(), many - 1U);
}

TEST(DuplicatesTest, OfNoneThatIsHeldNoneIsGone) {
  os::FakeKernel kernel;
  EXPECT_TRUE(Duplicates().has_still(kernel, 4711, 7));
}

}  // namespace
}  // namespace firebreak::hold
