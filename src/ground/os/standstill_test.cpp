// SPDX-License-Identifier: Apache-2.0
#include "ground/os/standstill.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include "ground/os/broker.h"
#include "ground/os/fd.h"
#include "ground/os/file.h"

namespace firebreak::os {
namespace {

/// The test has namespaces of its own, whose first process is this test's alone. None: nobody makes such
/// here.
std::optional<bool> is_refused_the_first_process() {
  const pid_t maker = ::fork();
  if (maker == 0) {
    if (::unshare(CLONE_NEWPID) != 0) ::_exit(2);
    const pid_t first = ::fork();
    if (first == 0) {
      const pid_t second = ::fork();
      const auto is_refused = [](const Status& what) {
        return !what && what.error().code == ErrorCode::PermissionDenied;
      };
      if (second == 0) {
        const bool all = is_refused(stop_all_but_writers_for_good(1, {})) &&
                         is_refused(stop_all_but_writers_for_good(0, {})) &&
                         is_refused(stop_all_but_writers_for_good(::getpid(), {}));
        ::_exit(all ? 0 : 1);
      }
      int status = -1;
      ::_exit(::waitpid(second, &status, 0) == second && status == 0 ? 0 : 1);
    }
    int status = -1;
    ::_exit(::waitpid(first, &status, 0) == first && status == 0 ? 0 : 1);
  }
  int status = -1;
  ::waitpid(maker, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 2) return std::nullopt;
  return status == 0;
}

/// A helper does it, as for the agent.
Result<std::unique_ptr<Standstill>> stop_all_but_writers(pid_t pid, const Fd& pipe) {
  static const auto keeper = RightsKeeper::start({FIREBREAK_TEST_LOOKS}, Milliseconds(60'000)).value();
  BrokerOptions options;
  options.keeper = keeper;
  return Broker(options).stop_all_but_writers(pid, pipe);
}

struct Counters {
  std::array<std::atomic<std::uint64_t>, 3> steps;
  std::atomic<bool> has_written;
  std::atomic<bool> first_is_to_end;  ///< thread
};

/// A process with three threads that count, and a fourth one that waits for room in a pipe.
class StandstillTest : public testing::Test {
 protected:
  StandstillTest() {
    auto made = make_pipe();
    EXPECT_TRUE(made);
    reading_ = std::move(made->reading);
    resize_pipe(reading_, 4096);
    counters_ = static_cast<Counters*>(
        ::mmap(nullptr, sizeof(Counters), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    new (counters_) Counters{};
    pid_ = ::fork();
    if (pid_ == 0) play(made->writing.get());
    made->writing.reset();
    EXPECT_TRUE(eventually([&] { return all_move() && is_writing(); }));
  }
  ~StandstillTest() override {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::munmap(counters_, sizeof(Counters));
  }

  [[noreturn]] void play(int pipe) {
    for (std::size_t i = 1; i < 3; ++i) std::thread([this, i] { count(i); }).detach();
    std::thread([this, pipe] {
      const std::string much(10'000, 'x');
      std::size_t written = 0;
      while (written < much.size()) {
        const ssize_t count = ::write(pipe, much.data() + written, much.size() - written);
        if (count > 0) written += static_cast<std::size_t>(count);
      }
      ::close(pipe);
      counters_->has_written = true;
    }).detach();
    count(0);
  }
  [[noreturn]] void count(std::size_t which) {
    while (true) {
      if (which == 0 && counters_->first_is_to_end) ::syscall(SYS_exit, 0);
      ++counters_->steps[which];
      ::usleep(100);  // a pause, or the test's own threads have to wait for a processor
    }
  }

  template <class Condition>
  static bool eventually(const Condition& condition) {
    for (int i = 0; i < 60'000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
  bool all_move() const {
    return counters_->steps[0] > 0 && counters_->steps[1] > 0 && counters_->steps[2] > 0;
  }
  bool is_writing() const {
    for (const auto& each : std::filesystem::directory_iterator("/proc/" + std::to_string(pid_) + "/task")) {
      long call = -1;
      std::ifstream(each.path() / "syscall") >> call;
      if (call == 1) return true;
    }
    return false;
  }
  /// How many of them have moved in a while.
  int moving() const {
    std::array<std::uint64_t, 3> before{};
    for (std::size_t i = 0; i < 3; ++i) before[i] = counters_->steps[i];
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    int moved = 0;
    for (std::size_t i = 0; i < 3; ++i) moved += counters_->steps[i] != before[i] ? 1 : 0;
    return moved;
  }
  /// A tracer hears of the stops of a process, too.
  int signal_of_end() const {
    int status = 0;
    pid_t ended = 0;
    do {
      ended = ::waitpid(pid_, &status, 0);
    } while (ended == pid_ && WIFSTOPPED(status));
    return ended == pid_ && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }
  void read_all() {
    std::array<char, 4096> bytes;
    while (::read(reading_.get(), bytes.data(), bytes.size()) > 0) {
    }
  }

  Fd reading_;
  Counters* counters_ = nullptr;
  pid_t pid_ = 0;
};

TEST_F(StandstillTest, OnlyWhoWritesGoesOn) {
  auto stopped = stop_all_but_writers(pid_, reading_);
  ASSERT_TRUE(stopped) << to_string(stopped.error());
  EXPECT_TRUE(eventually([&] { return moving() == 0; }));
  read_all();
  EXPECT_TRUE(eventually([&] { return counters_->has_written.load(); }));
  EXPECT_EQ(moving(), 0);
  stopped->reset();
  EXPECT_EQ(signal_of_end(), SIGKILL) << "it gets no further";
}

TEST_F(StandstillTest, AProcessWhoseFirstThreadHasEndedHasAWriter) {
  counters_->first_is_to_end = true;
  ASSERT_TRUE(eventually([&] { return moving() == 2; }));
  auto stopped = stop_all_but_writers(pid_, reading_);
  ASSERT_TRUE(stopped) << to_string(stopped.error());
  EXPECT_TRUE(eventually([&] { return moving() == 0; }));
  read_all();
  EXPECT_TRUE(eventually([&] { return counters_->has_written.load(); }));
}

// A thread that is just writing does not show that: it is looked for once more.
TEST_F(StandstillTest, WhoHasJustBeenGivenRoomGoesOn) {
  std::array<char, 4096> bytes;
  ASSERT_EQ(::read(reading_.get(), bytes.data(), bytes.size()), 4096);
  auto stopped = stop_all_but_writers(pid_, reading_);
  ASSERT_TRUE(stopped) << to_string(stopped.error());
  read_all();
  EXPECT_TRUE(eventually([&] { return counters_->has_written.load(); }));
}

TEST_F(StandstillTest, WhoIsKilledMeanwhileEnds) {
  auto stopped = stop_all_but_writers(pid_, reading_);
  ASSERT_TRUE(stopped);
  EXPECT_TRUE(eventually([&] { return moving() == 0; }));
  ::kill(pid_, SIGKILL);
  stopped->reset();
  EXPECT_EQ(signal_of_end(), SIGKILL);
}

TEST_F(StandstillTest, WhoHasADebuggerIsNotOurs) {
  const auto debugger = stop_all_but_writers(pid_, reading_);
  ASSERT_TRUE(debugger);
  const auto second = stop_all_but_writers(pid_, reading_);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::PermissionDenied);
}

// The thread waits for the end of one that is ours, and we for it.
TEST(StandstillOfExec, WhoRunsAnotherProgramMeanwhileIsNotWaitedForForEver) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  const pid_t child = ::fork();
  if (child == 0) {
    for (int i = 0; i < 100; ++i) std::thread([] { ::pause(); }).detach();
    std::thread([] {
      std::string line;
      while (line.find("TracerPid:") == std::string::npos || line.ends_with("\t0")) {
        std::ifstream status("/proc/self/status");
        while (std::getline(status, line) && !line.starts_with("TracerPid:")) {
        }
      }
      ::execl("/bin/sleep", "sleep", "300", nullptr);
    }).detach();
    ::pause();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  auto stopped = stop_all_but_writers(child, pipe->reading);  // whatever comes of it
  ::kill(child, SIGKILL);
  if (stopped) stopped->reset();
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST_F(StandstillTest, WhoIsGoneIsNotStopped) {
  const auto stopped = stop_all_but_writers(0x3fffffff, reading_);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::NotFound);
}

/// The first process would take all others along.
TEST(StandstillOf, TheFirstProcessIsRefused) {
  const auto is_refused = is_refused_the_first_process();
  if (!is_refused) GTEST_SKIP() << "nobody here makes a namespace of processes";
  EXPECT_TRUE(*is_refused);
}

}  // namespace
}  // namespace firebreak::os
