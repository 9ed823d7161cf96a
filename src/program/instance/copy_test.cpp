// SPDX-License-Identifier: Apache-2.0
/// A copy of a library that takes all that a driver takes, and is thrown away whole.
#include "program/instance/copy.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "ground/os/fd.h"
#include "program/instance/window.h"

namespace firebreak::instance {
namespace {

std::size_t count_in(const std::string& folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}
std::size_t descriptors() { return count_in("/proc/self/fd"); }
std::size_t threads() { return count_in("/proc/self/task"); }
std::string maps() {
  std::ifstream file("/proc/self/maps");
  return {std::istreambuf_iterator<char>(file), {}};
}
std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

/// Number of threads that greedy_begin() starts.
constexpr int started_threads = 6;

class Copy : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "a sanitizer wants its own functions in front of all";
#endif
  }
  static std::unique_ptr<DriverCopy> load(DriverCopy::Variables variables = {}) {
    auto copy = DriverCopy::load(FIREBREAK_GREEDY_LIBRARY, std::move(variables));
    EXPECT_TRUE(copy) << to_string(copy.error());
    return copy ? std::move(*copy) : nullptr;
  }
  template <class Function>
  static Function* function(const DriverCopy& copy, const char* name) {
    return reinterpret_cast<Function*>(copy.symbol(name));
  }
  static void begin(const DriverCopy& copy) {
    EXPECT_EQ(function<int()>(copy, "greedy_begin")(), started_threads);
  }
};

TEST_F(Copy, WhatItTakesIsKnownWhenItHappens) {
  const auto copy = load();
  const TakenCounts at_first = copy->counts();
  EXPECT_EQ(at_first.threads, 0U);
  const std::size_t threads_before = threads();
  begin(*copy);
  const TakenCounts then = copy->counts();
  EXPECT_EQ(then.threads, std::size_t{started_threads});
  EXPECT_EQ(threads(), threads_before + started_threads);
  EXPECT_GE(then.descriptors, 5U);
  EXPECT_EQ(then.mapped_bytes, (std::size_t{1} << 20) + (std::size_t{3} << 20));
  EXPECT_EQ(then.mappings, 3U);
  EXPECT_TRUE(copy->throw_away().is_gone);
}

TEST_F(Copy, WhatItTakesByAFunctionThatItLooksUpLaterIsItsOwnToo) {
  const auto copy = load();
  const int number = function<int()>(*copy, "greedy_open_event")();
  ASSERT_GE(number, 0);
  EXPECT_EQ(copy->counts().descriptors, 1U);
  EXPECT_TRUE(copy->throw_away().is_gone);
  EXPECT_EQ(::fcntl(number, F_GETFD), -1);
}

TEST_F(Copy, NothingIsLeftOfOneThatIsThrownAway) {
  const auto round = [] {
    const auto copy = load();
    begin(*copy);
    const Thrown thrown = copy->throw_away();
    EXPECT_TRUE(thrown.is_fence);
    EXPECT_TRUE(thrown.is_gone);
  };
  round();
  const std::size_t descriptors_before = descriptors();
  const std::size_t threads_before = threads();
  const std::size_t lines_before = lines_of(maps());
  constexpr std::size_t rounds = 40;
  for (std::size_t i = 0; i < rounds; ++i) round();
  EXPECT_EQ(descriptors(), descriptors_before);
  EXPECT_EQ(threads(), threads_before);
  EXPECT_LE(lines_of(maps()), lines_before + 8) << maps();
  EXPECT_EQ(maps().find("greedy"), std::string::npos) << maps();
}

// At the moment of a fault it would take some 40 ms.
TEST_F(Copy, ItsDebuggerIsThereBeforeItAsksForIt) {
  const auto times = [](const std::string& text) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find("libcudadebugger", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  const auto copy = load();
  copy->prepare_dump(FIREBREAK_DEBUGGER_LIBRARY);
  const std::string before = maps();
  EXPECT_GT(times(before), 0U);
  void* const debugger = function<void*(const char*)>(*copy, "greedy_load")(FIREBREAK_DEBUGGER_LIBRARY);
  ASSERT_NE(debugger, nullptr);
  EXPECT_EQ(maps(), before);
  void* const plain = ::dlopen(FIREBREAK_DEBUGGER_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
  EXPECT_NE(debugger, plain) << "it has one of its own";
  EXPECT_TRUE(copy->throw_away().is_gone);
  EXPECT_LT(times(maps()), times(before));
}

// NVIDIA's words, as an H200's driver 580.159.04 says them.
TEST_F(Copy, OfACoreDumpThatTheProgramDidNotAskForItHearsNothing) {
  const auto say = [](const DriverCopy& copy, const char* text) {
    testing::internal::CaptureStderr();
    function<void(const char*)>(copy, "greedy_say")(text);
    return testing::internal::GetCapturedStderr();
  };
  const char* const hint =
      "Starting GPU coredump generation, set the CUDA_COREDUMP_SHOW_PROGRESS environment variable to 1 to "
      "enable more "
      "detailed output\n";
  const auto ours = load({{"CUDA_COREDUMP_FILE", "/run/firebreak/core-dumps/pipes/1"}});
  EXPECT_EQ(say(*ours, hint), "");
  EXPECT_EQ(say(*ours, "out of paper\n"), "out of paper\n");
  const auto its_own = load();
  EXPECT_EQ(say(*its_own, hint), hint) << "its own setting asked for it";
  EXPECT_TRUE(ours->throw_away().is_gone);
  EXPECT_TRUE(its_own->throw_away().is_gone);
}

TEST_F(Copy, ManyAreThereAtOnceAndEachIsItsOwn) {
  const auto first = load({{"WHOSE", "first"}});
  const auto second = load({{"WHOSE", "second"}});
  const auto whose = [](const DriverCopy& copy) {
    return std::string(function<const char*(const char*)>(copy, "greedy_variable")("WHOSE"));
  };
  EXPECT_EQ(whose(*first), "first");
  EXPECT_EQ(whose(*second), "second");
  EXPECT_STREQ(function<const char*()>(*second, "greedy_first_of_environ")(), "WHOSE=second");
  EXPECT_EQ(::getenv("WHOSE"), nullptr);
  begin(*first);
  begin(*second);
  EXPECT_TRUE(first->throw_away().is_gone);
  EXPECT_EQ(second->counts().threads, std::size_t{started_threads});
  EXPECT_EQ(whose(*second), "second");
  EXPECT_TRUE(second->throw_away().is_gone);
}

TEST_F(Copy, OnlySoManyAreThereAtOnce) {
  std::vector<std::unique_ptr<DriverCopy>> all;
  while (all.size() < places_max) all.push_back(load());
  const auto one_more = DriverCopy::load(FIREBREAK_GREEDY_LIBRARY, {});
  ASSERT_FALSE(one_more);
  EXPECT_EQ(one_more.error().code, ErrorCode::ResourceExhausted);
  EXPECT_TRUE(all.back()->throw_away().is_gone);
  all.back() = load();
  for (const auto& each : all) EXPECT_TRUE(each->throw_away().is_gone);
}

TEST_F(Copy, WhatAThreadHasOfItEndsWithTheThreadWhileItIsThere) {
  const auto copy = load();
  std::thread(function<void()>(*copy, "greedy_set_value")).join();
  EXPECT_EQ(function<int()>(*copy, "greedy_ended_values")(), 1);
  EXPECT_TRUE(copy->throw_away().is_gone);
}

TEST_F(Copy, WhatAThreadHasOfOneThatIsGoneIsForgotten) {
  const auto copy = load();
  std::atomic<bool> has_value{false};
  std::atomic<bool> may_end{false};
  std::thread user([&] {
    function<void()>(*copy, "greedy_set_value")();
    has_value = true;
    while (!may_end) std::this_thread::yield();
  });
  while (!has_value) std::this_thread::yield();
  EXPECT_TRUE(copy->throw_away().is_gone);
  may_end = true;
  user.join();  // a handler that would run now is not there
}

constinit std::atomic<bool> is_called_back{false};
constinit std::atomic<bool> may_return{false};
void be_the_program() {
  Held::enter();
  is_called_back = true;
  while (!may_return) std::this_thread::yield();
  Held::leave();
}

TEST_F(Copy, NobodyIsEndedInsideTheProgramsCode) {
  const auto copy = load();
  const std::size_t threads_before = threads();
  const int open = function<int(const char*)>(*copy, "greedy_open")("/dev/null");
  is_called_back = may_return = false;
  function<void(void (*)())>(*copy, "greedy_call_back")(&be_the_program);
  while (!is_called_back) std::this_thread::yield();
  const Thrown thrown = copy->throw_away();
  EXPECT_TRUE(thrown.is_fence) << "what it had of the GPU is gone";
  EXPECT_FALSE(thrown.is_gone);
  EXPECT_EQ(::fcntl(open, F_GETFD), -1);
  EXPECT_EQ(threads(), threads_before + 1);
  may_return = true;
  while (!copy->throw_away().is_gone) {
  }
  EXPECT_EQ(threads(), threads_before);
}

constinit std::atomic<int> programs_signals{0};

TEST_F(Copy, TheSignalStaysThePrograms) {
  struct sigaction mine {};
  mine.sa_handler = [](int) { programs_signals.fetch_add(1); };
  ASSERT_EQ(::sigaction(Threads::signal(), &mine, nullptr), 0);
  const auto copy = load();
  begin(*copy);
  EXPECT_TRUE(copy->throw_away().is_gone);
  EXPECT_EQ(programs_signals, 0) << "none of its threads was meant";
  ASSERT_EQ(::raise(Threads::signal()), 0);
  EXPECT_EQ(programs_signals, 1);
  ::signal(Threads::signal(), SIG_DFL);
}

/// The driver looks there for addresses that nobody has.
TEST_F(Copy, ItReadsTheProcesssMemoryMapWithoutTheWindow) {
  const auto copy = load();
  void* const kept = ::mmap(reinterpret_cast<void*>(window_begin), std::size_t{1} << 21, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1, 0);
  ASSERT_EQ(kept, reinterpret_cast<void*>(window_begin));
  const os::Fd file(function<int(const char*)>(*copy, "greedy_open")("/proc/self/maps"));
  std::string seen(1 << 20, '\0');
  const ssize_t size = ::read(file.get(), seen.data(), seen.size());
  ASSERT_GT(size, 0);
  seen.resize(static_cast<std::size_t>(size));
  ::munmap(kept, std::size_t{1} << 21);
  EXPECT_THAT(seen, testing::HasSubstr("[stack]"));
  EXPECT_THAT(seen, testing::HasSubstr("instance_test"));
  EXPECT_THAT(seen, testing::Not(testing::HasSubstr("500000000000-")));
  EXPECT_TRUE(copy->throw_away().is_gone);
}

/// setuid() waits for an answer from each thread of the process, also from one that is being ended.
TEST_F(Copy, AProgramMayBecomeSomebodyWhileThreadsAreEnded) {
  std::atomic<bool> is_over{false};
  std::atomic<int> changes{0};
  std::thread changer([&] {
    while (!is_over.load()) {
      EXPECT_EQ(::setuid(::getuid()), 0);
      changes.fetch_add(1);
      std::this_thread::sleep_for(std::chrono::microseconds(200));  // others need the C library's locks, too
    }
  });
  for (int round = 0; round < 30; ++round) {
    const auto copy = load();
    begin(*copy);
    EXPECT_TRUE(copy->throw_away().is_gone);
  }
  is_over.store(true);
  changer.join();
  EXPECT_GT(changes.load(), 0);
}

TEST_F(Copy, ANumberThatIsAnotherFilesByNowStaysOpen) {
  const auto copy = load();
  const int number = function<int(const char*)>(*copy, "greedy_open")("/dev/null");
  ASSERT_EQ(::close(number), 0);  // the number is closed, as by a program that closes whatever it does not
                                  // know
  ASSERT_EQ(::open("/dev/zero", O_RDONLY), number);
  EXPECT_TRUE(copy->throw_away().is_gone);
  EXPECT_NE(::fcntl(number, F_GETFD), -1);
  ::close(number);
}

TEST_F(Copy, WhatItHasGivenToSomebodyStaysOpen) {
  const auto copy = load();
  const int number = function<int(const char*)>(*copy, "greedy_open")("/dev/null");
  copy->let_go(number);
  EXPECT_TRUE(copy->throw_away().is_gone);
  EXPECT_NE(::fcntl(number, F_GETFD), -1);
  ::close(number);
}

TEST_F(Copy, AThreadOfOursInsideItEndsWithIt) {
  const auto copy = load();
  const std::size_t threads_before = threads();
  std::atomic<bool> is_inside{false};
  ASSERT_TRUE(copy->start_thread([&] {
    is_inside = true;
    while (true) ::pause();
  }));
  while (!is_inside) std::this_thread::yield();
  EXPECT_TRUE(copy->throw_away().is_gone);
  EXPECT_EQ(threads(), threads_before);
}

TEST(Window, IsNoPartOfTheMemoryMap) {
  const std::string before = "4fffffe00000-500000000000 ---p 00000000 00:00 0 \n";
  const std::string inside = "500000000000-504000000000 ---p 00000000 00:00 0 \n";
  const std::string after = "540000000000-540000001000 rw-p 00000000 00:00 0 [x]";
  EXPECT_EQ(without_window(before + inside + after), before + after);
  EXPECT_EQ(without_window(""), "");
  EXPECT_EQ(without_window("4fffffe00000-500200000000 ---p 0 00:00 0 x\n"),
            "4fffffe00000-500000000000 ---p 0 00:00 0 x\n")
      << "guard ranges that touch are one line";
  EXPECT_EQ(without_window("4fffffe00000-540000200000 ---p\n" + after),
            "4fffffe00000-500000000000 ---p\n540000000000-540000200000 ---p\n" + after);
}

TEST(Arena, GivesPiecesThatAreTheirOwners) {
  Arena arena;
  std::vector<std::pair<unsigned char*, std::size_t>> all;
  for (std::size_t size = 1; size < 300'000; size = size * 3 / 2 + 1) {
    for (const std::size_t alignment : {16U, 64U, 4096U}) {
      auto* const piece = static_cast<unsigned char*>(arena.allocate(size, alignment));
      ASSERT_NE(piece, nullptr);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(piece) % alignment, 0U);
      EXPECT_GE(arena.usable_bytes(piece), size);
      std::fill_n(piece, size, static_cast<unsigned char>(all.size()));
      all.emplace_back(piece, size);
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t at = 0; at < all[i].second; ++at)
      ASSERT_EQ(all[i].first[at], static_cast<unsigned char>(i));
    arena.give(all[i].first);
  }
  auto* const zeroed = static_cast<unsigned char*>(arena.allocate_zeroed(100'000));
  for (std::size_t at = 0; at < 100'000; ++at) ASSERT_EQ(zeroed[at], 0);
  EXPECT_FALSE(arena.holds(&arena));
}

// A large program's core dump is a matter of page faults.
TEST(Arena, ItsPagesAreLargeWhereLinuxHasSome) {
  Arena arena;
  const void* const piece = arena.allocate(100);
  ASSERT_NE(piece, nullptr);
  std::ifstream lines("/proc/self/smaps");
  bool is_it = false, is_large = false;
  for (std::string line; std::getline(lines, line);) {
    std::uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2)
      is_it =
          begin <= reinterpret_cast<std::uintptr_t>(piece) && reinterpret_cast<std::uintptr_t>(piece) < end;
    if (is_it && line.starts_with("VmFlags:")) is_large = line.find(" hg") != std::string::npos;
  }
  EXPECT_TRUE(is_large);
}

TEST(Arena, WhatIsGivenIsTakenAgain) {
  Arena arena;
  void* const first = arena.allocate(1000);
  arena.give(first);
  EXPECT_EQ(arena.allocate(1000), first);
  EXPECT_EQ(arena.allocate(std::size_t{1} << 40), nullptr);
}

}  // namespace
}  // namespace firebreak::instance
