// SPDX-License-Identifier: Apache-2.0
// Against the real kernel: how much is looked at of a living process, and that nothing it opens is missed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <thread>

#include "agent/endings/hold/holder.h"
#include "ground/os/descriptors.h"
#include "ground/os/memory.h"
#include "ground/os/processes.h"
#include "tests/doubles/os/counting_kernel.h"

namespace firebreak::hold {
namespace {

constexpr const char* space_name = "holder-looks-space";
constexpr const char* manager_name = "holder-looks-manager";
constexpr std::uint32_t never = 1'000'000;

/// A kernel with descriptors of the test's own in the place of UVM's.
class KernelWithSpace : public os::CountingKernel {
 public:
  std::string uvm_link_target() const override { return "/memfd:" + std::string(space_name) + " (deleted)"; }
  std::string rm_link_target() const override { return "/memfd:" + std::string(manager_name) + " (deleted)"; }
  /// The second part of a look may be late.
  Result<os::DescriptorLinks> read_links(const std::string& directory, int from) override {
    begins += from == 0 ? 1 : 0;
    in_background += loop != nullptr && loop->urgent() >= 0 ? 1 : 0;
    if (is_late && from != 0) return fail(ErrorCode::Timeout, "it does not let itself be looked at");
    return CountingKernel::read_links(directory, from);
  }
  bool is_late = false;
  int begins = 0;  ///< looks that begin with the first descriptor
  const os::EventLoop* loop = nullptr;
  int in_background = 0;  ///< looks that are put off for what comes first
};

/// Deeds that the process is told to do, and answers when it has done them.
enum class Deed : char {
  OpenSpace,
  OpenSpaceForFile,   ///< leaves as many descriptors as before
  OpenSpaceForSpace,  ///< keeps the number
  Fork,               ///< a child that has the same, and lives as long as the test
  OpenVeryMany,       ///< files; what it opens later has higher numbers
  EndFirstThread,     ///< goes on in another one
};

class HolderLooks : public testing::Test {
 protected:
  static constexpr int files = 40;
  static constexpr int very_many = 12'000;

  HolderLooks() {
    EXPECT_EQ(::pipe2(to_.data(), O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(from_.data(), O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) live();
    EXPECT_TRUE(answers());
  }
  ~HolderLooks() override {
    holder_.reset();
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    for (const int end : {to_[0], to_[1], from_[0], from_[1]}) ::close(end);
  }
  void follow(std::uint32_t most_glances) {
    HolderOptions options;
    options.first_look = options.longest_look = std::chrono::milliseconds(1);
    options.hold = Nanoseconds(1);
    options.most_glances = most_glances;
    options.takes_duplicates = takes_duplicates_;
    HolderCallbacks callbacks;
    callbacks.on_released = [this](const Release&) { released_ = true; };
    callbacks.on_traces = [this](pid_t pid) { traces_ = holder_->traces_of(pid); };
    holder_.emplace(*loop_, kernel_, clock_, options, std::move(callbacks));
    ASSERT_TRUE(holder_->follow(pid_));
  }
  void wait_until_its_first_thread_has_ended() {
    while (os::is_alive(kernel_.read_file(os::proc_folder(pid_) + "/stat").value())) ::usleep(1000);
  }
  void tell(Deed deed) {
    EXPECT_EQ(::write(to_[1], &deed, 1), 1);
    EXPECT_TRUE(answers());
  }
  /// Waits until it has been counted so often again, or looked at.
  void look_times(int times) {
    const int before = kernel_.counts + kernel_.links;
    while (kernel_.counts + kernel_.links < before + times) loop_->run_once(std::nullopt);
  }
  bool is_held() const { return !holder_->held().empty(); }
  void run_until_held() {
    while (!is_held()) loop_->run_once(std::nullopt);
  }
  bool linux_counts() { return os::count_descriptors(kernel_, ::getpid()).has_value(); }

  KernelWithSpace kernel_;
  SystemClock clock_;
  std::unique_ptr<os::EventLoop> loop_ = os::EventLoop::create().value();
  std::optional<Holder> holder_;
  pid_t pid_ = 0;
  bool takes_duplicates_ = true;
  bool released_ = false;
  Traces traces_;  ///< traces as last told

 private:
  bool answers() {
    char word = 0;
    return ::read(from_[0], &word, 1) == 1;
  }
  /// Its child.
  [[noreturn]] void outlive() {
    ::close(from_[0]);
    ::pollfd nobody_reads{from_[1], 0, 0};
    ::poll(&nobody_reads, 1, -1);
    ::_exit(0);
  }
  /// The process.
  [[noreturn]] void live() {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    may_have_very_many_ = os::make_room_for_descriptors(very_many + 1'000).has_value();
    int file = -1;
    for (int i = 0; i < files; ++i) file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    const os::Fd manager = os::create_memory_file(manager_name, 4096).value();
    os::Fd space;
    obey(file, space);
  }
  [[noreturn]] void obey(int file, os::Fd& space) {
    for (char word = 0; ::write(from_[1], &word, 1) == 1 && ::read(to_[0], &word, 1) == 1;) {
      const auto deed = static_cast<Deed>(word);
      if (deed == Deed::Fork) {
        if (::fork() == 0) outlive();
        continue;
      }
      if (deed == Deed::OpenVeryMany) {
        for (int i = 0; may_have_very_many_ && i < very_many; ++i) (void)::fcntl(file, F_DUPFD_CLOEXEC, 3);
        continue;
      }
      if (deed == Deed::EndFirstThread) {
        std::thread([&] { obey(file, space); }).detach();
        ::syscall(SYS_exit, 0);  // ends this thread alone
      }
      if (deed == Deed::OpenSpaceForFile) ::close(file);
      os::Fd made = os::create_memory_file(space_name, 4096).value();
      if (deed == Deed::OpenSpaceForSpace) {
        ::dup3(made.get(), space.get(), O_CLOEXEC);
      } else {
        space = std::move(made);
      }
    }
    ::_exit(0);
  }

  std::array<int, 2> to_{};
  std::array<int, 2> from_{};
  bool may_have_very_many_ = false;  ///< the process's
};

TEST_F(HolderLooks, WhatComesFirstWaitsForNone) {
  kernel_.loop = &*loop_;
  follow(0);
  EXPECT_EQ(kernel_.in_background, 0) << "who is there for the first time is looked at at once";
  look_times(3 * files);
  EXPECT_GT(kernel_.in_background, 1);
}

// A look at it may come between its death and the word of it, when it has no image any more.
TEST_F(HolderLooks, TheChildOfOneThatWasLookedAtWhenItWasDeadIsKnown) {
  takes_duplicates_ = false;
  tell(Deed::OpenSpace);
  tell(Deed::Fork);
  follow(never);
  ::kill(pid_, SIGKILL);
  wait_until_its_first_thread_has_ended();
  look_times(3);
  EXPECT_TRUE(holder_->keep(pid_));
}

TEST_F(HolderLooks, DescriptorsOfAProcessThatDoesNotChangeAreNotLookedAtAgainAndAgain) {
  if (!linux_counts()) GTEST_SKIP() << "Linux counts descriptors from 6.2 on";
  tell(Deed::OpenSpace);
  follow(never);
  EXPECT_TRUE(is_held());
  const int links = kernel_.links;
  EXPECT_GE(links, files);
  look_times(20);
  EXPECT_EQ(kernel_.links, links);
}

TEST_F(HolderLooks, OneOfVeryManyDescriptorsIsLookedAtInParts) {
  if (!linux_counts()) GTEST_SKIP() << "Linux counts descriptors from 6.2 on";
  tell(Deed::OpenVeryMany);
  if (os::count_descriptors(kernel_, pid_).value_or(0) < very_many) GTEST_SKIP() << "nobody may have so many";
  tell(Deed::OpenSpace);
  follow(never);
  constexpr int most = os::most_descriptors_in_a_look;
  EXPECT_LE(kernel_.links, most);
  EXPECT_FALSE(holder_->is_large(pid_)) << "nobody knows yet";
  while (!is_held()) {
    const int before = kernel_.links;
    loop_->run_once(std::nullopt);
    EXPECT_LE(kernel_.links - before, most) << "in one turn";
  }
  EXPECT_GT(kernel_.links, very_many);
  EXPECT_TRUE(holder_->is_large(pid_));
}

// The process is waited for as long as for room: not from part to part.
TEST_F(HolderLooks, AfterAPartThatIsLateALookBeginsAgain) {
  tell(Deed::OpenVeryMany);
  if (os::count_descriptors(kernel_, pid_).value_or(very_many) < very_many)
    GTEST_SKIP() << "nobody may have so many";
  tell(Deed::OpenSpace);
  kernel_.is_late = true;
  follow(never);
  while (!holder_->lacks(pid_)) loop_->run_once(std::nullopt);
  const int begins = kernel_.begins;
  kernel_.is_late = false;
  run_until_held();
  EXPECT_GT(kernel_.begins, begins);
  EXPECT_FALSE(holder_->lacks(pid_));
}

TEST_F(HolderLooks, WhatItOpensLaterIsHeld) {
  follow(never);
  look_times(20);
  EXPECT_FALSE(is_held());
  tell(Deed::OpenSpace);
  run_until_held();
}

// The next agent knows it by its mark, also where nothing changes any more after that look.
TEST_F(HolderLooks, WhatALookThatWasAskedForFindsIsToldToo) {
  follow(never);
  tell(Deed::OpenSpace);
  holder_->look(pid_);
  while (traces_.marks.empty()) loop_->run_once(std::nullopt);
  EXPECT_EQ(traces_.marks, holder_->traces_of(pid_).marks);
}

TEST_F(HolderLooks, AndWhatItOpensInThePlaceOfAnotherFile) {
  follow(3);
  look_times(20);
  EXPECT_FALSE(is_held());
  tell(Deed::OpenSpaceForFile);
  run_until_held();
}

TEST_F(HolderLooks, AndWhatItOpensInThePlaceOfOneThatWasHeld) {
  tell(Deed::OpenSpace);
  follow(never);
  look_times(20);
  EXPECT_FALSE(released_);
  tell(Deed::OpenSpaceForSpace);
  while (!released_) loop_->run_once(std::nullopt);
  EXPECT_TRUE(is_held());
}

// The process lives, and shows what it has in another thread's folder.
TEST_F(HolderLooks, AProcessWhoseFirstThreadHasEndedIsHeldAsBefore) {
  tell(Deed::OpenSpace);
  follow(0);
  EXPECT_TRUE(is_held());
  tell(Deed::EndFirstThread);
  wait_until_its_first_thread_has_ended();
  look_times(2 * files);
  EXPECT_FALSE(released_);
  ASSERT_TRUE(is_held());
  EXPECT_FALSE(holder_->held().at(0).dead);
}

TEST_F(HolderLooks, AndItsSpaceIsReleasedWhenThatNumberIsAnothers) {
  tell(Deed::OpenSpace);
  follow(0);
  tell(Deed::EndFirstThread);
  wait_until_its_first_thread_has_ended();
  tell(Deed::OpenSpaceForSpace);
  while (!released_) loop_->run_once(std::nullopt);
}

}  // namespace
}  // namespace firebreak::hold
