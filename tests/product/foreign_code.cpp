// SPDX-License-Identifier: Apache-2.0
/// What libraries in other people's programs do with libstdc++, fmt and the functions of
/// src/ground/foreign/old_glibc.c. foreign_code.py loads it, here and in older and newer systems
/// (foreign-roots.sh).
#include <dlfcn.h>
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds wait{20};

[[gnu::noinline]] void throw_at_depth(int depth) {
  if (depth == 0) throw std::runtime_error("thrown");
  throw_at_depth(depth - 1);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // no tail call
}

bool exceptions_are_caught() {
  try {
    throw_at_depth(10);
  } catch (const std::runtime_error& error) {
    return error.what() == std::string("thrown");
  }
  return false;
}

bool conditions_wait_as_long_as_they_are_told_to() {
  std::mutex mutex;
  std::condition_variable condition;
  std::unique_lock lock(mutex);
  const auto begin = steady_clock::now();
  const bool came = condition.wait_for(lock, wait, [] { return false; });
  return !came && steady_clock::now() - begin >= wait;
}

bool locks_are_waited_for() {
  std::timed_mutex mutex;
  const std::lock_guard held(mutex);
  bool got = true;
  steady_clock::duration waited{};
  std::thread([&] {
    const auto begin = steady_clock::now();
    got = mutex.try_lock_for(wait);
    waited = steady_clock::now() - begin;
  }).join();
  return !got && waited >= wait;
}

bool threads_clean_up() {
  static std::atomic<int> ended{0};
  struct End {
    int value = 1;
    ~End() { ended += value; }
  };
  static std::once_flag once;
  std::shared_mutex shared;
  const auto run = [&shared] {
    thread_local End end;
    std::call_once(once, [] { ended += 100; });
    const std::shared_lock lock(shared);
    end.value = 10;
  };
  std::thread first(run);
  std::thread second(run);
  first.join();
  second.join();
  return ended == 120;
}

bool files_are_found() {
  std::error_code ignored;
  return std::filesystem::is_directory("/", ignored) && !std::filesystem::exists("/no such file", ignored) &&
         !std::filesystem::is_symlink("/", ignored);
}

bool numbers_differ() {
  std::random_device device;
  return device() != device() || device() != device();
}

bool text_is_formatted() { return fmt::format("{:>6.2f} {:L} {}", 1.5, 1234567, "x") == "  1.50 1234567 x"; }

bool the_linker_answers() {
  Dl_info here{};
  return dladdr(reinterpret_cast<const void*>(&throw_at_depth), &here) != 0 &&
         dlvsym(RTLD_DEFAULT, "free", "GLIBC_2.2.5") != nullptr &&
         dlopen("/no such library", RTLD_NOW) == nullptr && dlerror() != nullptr;
}

}  // namespace

/// The number of the first that is not as it should be; 0: none.
extern "C" __attribute__((visibility("default"))) int foreign_code_failure() {
  bool (*const checks[])() = {&exceptions_are_caught, &conditions_wait_as_long_as_they_are_told_to,
                              &locks_are_waited_for,  &threads_clean_up,
                              &files_are_found,       &numbers_differ,
                              &text_is_formatted,     &the_linker_answers};
  int number = 0;
  for (const auto check : checks) {
    ++number;
    if (!check()) return number;
  }
  return 0;
}
