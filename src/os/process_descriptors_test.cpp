// SPDX-License-Identifier: Apache-2.0
#include "os/descriptors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <thread>

#include "os/fake_kernel.h"
#include "os/memory.h"
#include "os/processes.h"
#include "os/real_kernel.h"

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
    ::syscall(SYS_exit, 0);  // of this thread alone
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
