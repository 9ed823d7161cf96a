// SPDX-License-Identifier: Apache-2.0
#include "ground/os/memory_left.h"

#include <gmock/gmock.h>

namespace firebreak::os {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(MemoryLeft, IsWhatTheMachineHas) {
  EXPECT_EQ(available_in("MemTotal: 100 kB\nMemFree: 10 kB\nMemAvailable:    40 kB\n"), 40U << 10U);
  EXPECT_EQ(available_in("MemTotal: 100 kB\n"), std::nullopt);
  EXPECT_EQ(available_in("MemAvailable: many\n"), std::nullopt);
  EXPECT_GT(memory_left_bytes().value_or(0), 0U);
}

TEST(MemoryLeft, GroupsAreThoseFromWithinToWithout) {
  EXPECT_THAT(group_folders_in("0::/a/b\n"),
              ElementsAre("/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"));
  EXPECT_THAT(group_folders_in("1:name=systemd:/x\n0::/\n"), ElementsAre("/sys/fs/cgroup"));
  EXPECT_THAT(group_folders_in("5:memory:/x\n"), IsEmpty());
  EXPECT_THAT(group_folders_in(""), IsEmpty());
}

TEST(MemoryLeft, AGroupLeavesWhatItHasNotUsed) {
  EXPECT_EQ(left_in_group("100\n", "30\n"), 70U);
  EXPECT_EQ(left_in_group("100\n", "130\n"), 0U);
  EXPECT_EQ(left_in_group("max\n", "30\n"), std::nullopt);
  EXPECT_EQ(left_in_group("", ""), std::nullopt);
}

}  // namespace
}  // namespace firebreak::os
