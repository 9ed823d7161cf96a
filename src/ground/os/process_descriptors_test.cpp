// SPDX-License-Identifier: Apache-2.0
#include "ground/os/descriptors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "ground/os/looks.h"
#include "ground/os/memory.h"
#include "ground/os/processes.h"
#include "ground/os/real_kernel.h"
#include "ground/os/self.h"
#include "tests/doubles/os/fake_kernel.h"

namespace firebreak::os {
namespace {

constexpr pid_t somebody = 42;

class VisitDescriptors : public testing::Test {
 protected:
  VisitDescriptors() {
    kernel_.add_process(somebody);
    for (const auto& [number, target] :
         {std::pair(3, "/dev/null"), {7, "/dev/nvidia-uvm"}, {12, "pipe:[1]"}}) {
      kernel_.give_descriptor(somebody, number, target, create_memory_file("any", 1).value());
    }
  }
  FakeKernel kernel_;
};

TEST_F(VisitDescriptors, ShowsNumbersAndTargets) {
  std::map<int, std::string> seen;
  EXPECT_TRUE(visit_descriptors(kernel_, somebody, [&](int number, const std::string& target) {
    seen.emplace(number, target);
    return true;
  }));
  EXPECT_THAT(seen, testing::ElementsAre(testing::Pair(3, "/dev/null"), testing::Pair(7, "/dev/nvidia-uvm"),
                                         testing::Pair(12, "pipe:[1]")));
}

TEST_F(VisitDescriptors, StopsWhenEnoughWasSeen) {
  int seen = 0;
  EXPECT_TRUE(visit_descriptors(kernel_, somebody, [&](int, const std::string&) { return ++seen < 2; }));
  EXPECT_EQ(seen, 2);
}

TEST_F(VisitDescriptors, OfNobodyFails) {
  const Status visited = visit_descriptors(kernel_, 43, [](int, const std::string&) { return true; });
  ASSERT_FALSE(visited);
  EXPECT_EQ(visited.error().code, ErrorCode::NotFound);
}

/// Gives `count` descriptors, from number 100 on.
void give_many(FakeKernel& kernel, std::size_t count) {
  const Fd file = create_memory_file("many", 1).value();
  for (std::size_t i = 0; i < count; ++i)
    kernel.give_descriptor(somebody, 100 + static_cast<int>(i), "socket:[9]", duplicate(file.get()).value());
}

TEST_F(VisitDescriptors, AScanShowsAllOfThemLookByLook) {
  give_many(kernel_, 2 * most_descriptors_in_a_look);
  DescriptorScan scan;
  std::map<int, int> seen;
  for (const int looks : {1, 2, 3}) {
    std::size_t in_this = 0;
    const auto all = scan.visit_next(kernel_, somebody, [&](int number, const std::string&) {
      ++seen[number];
      return ++in_this > 0;
    });
    EXPECT_EQ(all.value(), looks == 3);
    EXPECT_EQ(scan.is_under_way(), looks < 3);
    EXPECT_LE(in_this, most_descriptors_in_a_look);
  }
  EXPECT_EQ(seen.size(), 2 * most_descriptors_in_a_look + 3);
  EXPECT_TRUE(std::ranges::all_of(seen, [](const auto& each) { return each.second == 1; }));
  EXPECT_EQ(scan.looks(), 3U);
}

TEST_F(VisitDescriptors, OfVeryManyAScanShowsTheFirstAndBeginsAgain) {
  give_many(kernel_, most_descriptors_of_a_process);
  std::size_t seen = 0;
  const auto count = [&](int, const std::string&) { return ++seen > 0; };
  DescriptorScan scan;
  do {
    EXPECT_FALSE(scan.visit_next(kernel_, somebody, count).value());
  } while (scan.is_under_way());
  EXPECT_EQ(seen, most_descriptors_of_a_process);
  EXPECT_FALSE(visit_first_descriptors(kernel_, somebody, count).value());
  EXPECT_EQ(seen, 2 * most_descriptors_of_a_process);
}

/// Looks of which each sees the fewest, as on a busy machine, at the descriptors of this process.
class ScanOfShortLooks : public testing::Test {
 protected:
  ScanOfShortLooks() { kernel_.look_by(direct_looks(Nanoseconds{})); }

  /// True when there are as many as these in all.
  bool have(std::size_t count) {
    const std::size_t others = open_descriptors().value();
    while (many_.size() + others < count) {
      many_.emplace_back(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
      if (!many_.back()) return false;
    }
    return true;
  }
  /// How often each was shown, and whether those were all.
  std::pair<std::map<int, int>, bool> scan() {
    std::map<int, int> seen;
    bool are_all = false;
    do {
      are_all = scan_
                    .visit_next(kernel_, own_pid(),
                                [&](int number, const std::string&) { return ++seen[number] > 0; })
                    .value();
    } while (scan_.is_under_way());
    return {seen, are_all};
  }

  DescriptorScan scan_;

 private:
  RealKernel kernel_;
  std::vector<Fd> many_;
};

TEST_F(ScanOfShortLooks, SeesAllOfThemOnce) {
  if (!have(6 * most_descriptors_in_a_look)) GTEST_SKIP() << "nobody may have so many";
  const auto [seen, are_all] = scan();
  EXPECT_TRUE(are_all);
  EXPECT_GE(seen.size(), 6 * most_descriptors_in_a_look);
  EXPECT_TRUE(std::ranges::all_of(seen, [](const auto& each) { return each.second == 1; }));
  EXPECT_GE(scan_.looks(), 6 * most_descriptors_in_a_look / fewest_descriptors_in_a_look);
}

TEST_F(ScanOfShortLooks, SeesNoMoreThanOneOfLongOnes) {
  if (!have(most_descriptors_of_a_process + 100)) GTEST_SKIP() << "nobody may have so many";
  const auto [seen, are_all] = scan();
  EXPECT_FALSE(are_all);
  EXPECT_EQ(seen.size(), most_descriptors_of_a_process);
}

/// Whoever goes on until there are no more ends.
TEST_F(VisitDescriptors, AfterAnErrorThereIsNothingToGoOnWith) {
  int from = 77;
  EXPECT_FALSE(visit_some_descriptors(kernel_, 43, from, [](int, const std::string&) { return true; }));
  EXPECT_EQ(from, 0);
}

TEST_F(VisitDescriptors, OneThatEndsWhileItIsLookedAtHasNotShownThatItHasNone) {
  for (const char* const number : {"3", "7", "12"})
    kernel_.refuse("/proc/42/fd/" + std::string(number), Error{ErrorCode::NotFound, "it is gone", {}});
  int from = 0;
  const auto visited =
      visit_some_descriptors(kernel_, somebody, from, [](int, const std::string&) { return true; });
  ASSERT_FALSE(visited);
  EXPECT_EQ(visited.error().code, ErrorCode::Timeout);
}

TEST_F(VisitDescriptors, AScanThatHasSeenEnoughBeginsAgain) {
  give_many(kernel_, 2 * most_descriptors_in_a_look);
  DescriptorScan scan;
  const auto enough = [](int number, const std::string&) { return number < 7; };
  EXPECT_TRUE(scan.visit_next(kernel_, somebody, enough).value());
  EXPECT_FALSE(scan.is_under_way());
}

/// A process that goes on in another thread than its first, which has ended.
class WithoutItsFirstThread : public testing::Test {
 protected:
  WithoutItsFirstThread() : pid_(::fork()) {
    if (pid_ != 0) {
      while (is_alive(kernel_.read_file(proc_folder(pid_) + "/stat").value_or(""))) ::usleep(1000);
      return;
    }
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::thread([] {
      for (;;) ::pause();
    }).detach();
    ::syscall(SYS_exit, 0);  // ends this thread alone
  }
  ~WithoutItsFirstThread() override {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  RealKernel kernel_;
  Fd file_ = create_memory_file("without-its-first-thread", 1).value();  // the child has it too
  pid_t pid_;
};

TEST_F(WithoutItsFirstThread, AProcessShowsWhatItHas) {
  std::map<int, std::string> seen;
  EXPECT_TRUE(visit_descriptors(kernel_, pid_, [&](int number, const std::string& target) {
    seen.emplace(number, target);
    return true;
  }));
  EXPECT_THAT(seen,
              testing::Contains(testing::Pair(file_.get(), testing::HasSubstr("without-its-first-thread"))));
  DescriptorScan scan;
  EXPECT_TRUE(
      scan.visit_next(kernel_, pid_, [](int number, const std::string&) { return number < 0; }).value());
  EXPECT_NE(living_thread(kernel_, pid_), pid_);
  EXPECT_EQ(kernel_.is_same_file(living_thread(kernel_, pid_), file_.get(), file_).value(), true);
  const bool linux_counts = count_descriptors(kernel_, ::getpid()).has_value();
  EXPECT_EQ(count_descriptors(kernel_, pid_).value_or(0), linux_counts ? seen.size() : 0);
}

TEST_F(WithoutItsFirstThread, AProcessHasTheImageThatItHad) {
  EXPECT_FALSE(image_of(kernel_, ::getpid()).empty());
  EXPECT_EQ(image_of(kernel_, pid_), image_of(kernel_, ::getpid()));
}

}  // namespace
}  // namespace firebreak::os
