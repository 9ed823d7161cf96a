// SPDX-License-Identifier: Apache-2.0
#include "ground/os/descriptors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "ground/os/fd.h"
#include "ground/os/program.h"
#include "ground/os/real_kernel.h"

namespace firebreak::os {
namespace {

TEST(DescriptorLimitTest, CountsWhatIsOpen) {
  const std::size_t before = open_descriptors().value();
  const auto one = duplicate(0);
  ASSERT_TRUE(one);
  EXPECT_EQ(open_descriptors().value(), before + 1);
}

/// The test has a process of its own: a limit that is raised stays raised.
TEST(DescriptorLimitTest, IsRaisedForUsAndNotForWhomWeStart) {
  const auto in_child = [] {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    const rlimit low{64, limit.rlim_max};
    if (::setrlimit(RLIMIT_NOFILE, &low) != 0) return 1;
    const auto raised = raise_descriptor_limit();
    const auto now = descriptor_limit();
    if (!raised || !now || raised->soft < limit.rlim_max || *raised != *now) return 2;
    RealKernel kernel;
    SpawnRequest request;
    request.command = {"sh", "-c", "ulimit -Sn; ulimit -Hn"};
    const auto said = run_program(kernel, request, "", Milliseconds(60'000));
    const std::string wanted = "64\n" + std::to_string(limit.rlim_max) + "\n";
    return said && said->output == wanted ? 0 : 3;
  };
  EXPECT_EXIT(::_exit(in_child()), testing::ExitedWithCode(0), "");
}

TEST(DescriptorLimitTest, WhatIsMovedAboveItLeavesItAsItWas) {
  const auto in_child = [] {
    constexpr rlim_t low = 64;
    const rlimit limit{low, low + 2};
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
    const Fd first = move_above_limit(std::move(*duplicate(0)));
    const Fd second = move_above_limit(std::move(*duplicate(0)));
    if (first.get() != 64 || second.get() != 65 || descriptor_limit()->soft != low) return 2;
    if (::fcntl(first.get(), F_GETFD) != FD_CLOEXEC) return 3;
    const Fd third = move_above_limit(std::move(*duplicate(0)));
    return third && third.get() < 64 && descriptor_limit()->soft == low ? 0 : 4;
  };
  EXPECT_EXIT(::_exit(in_child()), testing::ExitedWithCode(0), "");
}

TEST(DescriptorLimitTest, RoomIsMadeWhereThereIsNoneAndTheHardLimitAllowsIt) {
  const auto in_child = [] {
    constexpr rlim_t low = 64;
    const rlimit limit{low, 3 * low};
    if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return 1;
    if (!make_room_for_descriptors(8) || descriptor_limit()->soft != low) return 2;
    std::vector<Fd> taken;
    while (auto one = duplicate(0)) taken.push_back(std::move(*one));
    if (!make_room_for_descriptors(8) || descriptor_limit()->soft != 2 * low) return 3;
    while (auto one = duplicate(0)) taken.push_back(std::move(*one));
    taken.erase(taken.begin());  // a low number is no room for more than one
    if (!make_room_for_descriptors(8) || descriptor_limit()->soft != 3 * low) return 4;
    while (auto one = duplicate(0)) taken.push_back(std::move(*one));
    const Status none = make_room_for_descriptors(8);
    const bool is_told = !none && none.error().code == ErrorCode::ResourceExhausted &&
                         none.error().message.find("192 in all") != std::string::npos;
    return is_told ? 0 : 5;
  };
  EXPECT_EXIT(::_exit(in_child()), testing::ExitedWithCode(0), "");
}

TEST(DescriptorLimitTest, IsRaisedNoFurtherThanAskedFor) {
  EXPECT_EXIT(::_exit(raise_descriptor_limit(100)->soft == 100 ? 0 : 1), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace firebreak::os
