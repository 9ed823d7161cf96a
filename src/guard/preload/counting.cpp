// SPDX-License-Identifier: Apache-2.0
#include "guard/preload/counting.h"

#include <string>

#include "os/background_thread.h"

namespace firebreak::guard {

std::atomic<std::uint64_t> streams_age{1};
std::atomic<std::uint64_t> kernels_age{1};
constinit thread_local Known known{};

namespace {

/// Gives the thread's slots back at its end.
struct ThreadEnd {
  bool wanted = false;
  ~ThreadEnd() {
    for (KnownStream& each : known.streams) each.age = 0;
    for (KnownStream& each : known.per_thread_streams) each.age = 0;
    LaunchWords* const words = wanted ? existing_words() : nullptr;
    if (words != nullptr) words->log().thread_ended(reinterpret_cast<WorkLog::Thread>(&known));
  }
};
thread_local ThreadEnd thread_end;

void stop_words() {
  if (LaunchWords* const words = existing_words()) words->stop();
}

}  // namespace

[[gnu::noinline]] abi::GuardLaunches* find_slot(CUstream stream, bool per_thread, KnownStream& entry) {
  const std::uint64_t age = streams_age.load(std::memory_order_relaxed);
  LaunchWords* const words = words_of_process();
  if (words == nullptr) {
    entry = {stream, age, nullptr};
    return nullptr;
  }
  static const bool prepared = [] {
    os::run_at_exit(&stop_words);
    return true;
  }();
  thread_end.wanted = prepared;
  abi::GuardLaunches* const slot = words->slot(reinterpret_cast<WorkLog::Thread>(&known), stream, per_thread);
  if (slot != nullptr || words->log().is_full()) entry = {stream, age, slot};
  return slot;
}

[[gnu::noinline]] std::uint16_t find_kernel(CUfunction function, KnownName& entry) {
  LaunchWords* const words = words_of_process();
  if (words == nullptr) return 0;
  const std::uint64_t age = kernels_age.load(std::memory_order_relaxed);
  entry = {function, age, words->kernel(function)};
  return entry.index;
}

[[gnu::noinline]] std::uint16_t find_call(const char* name, KnownName& entry) {
  LaunchWords* const words = words_of_process();
  if (words == nullptr) return 0;
  const std::uint64_t age = kernels_age.load(std::memory_order_relaxed);
  entry = {name, age, words->log().kernel(std::string(name) + "()")};
  return entry.index;
}

void note_uncounted() {
  LaunchWords* const words = words_of_process();
  if (words != nullptr) words->log().note_gap(abi::GuardWorkUncounted);
}

void forget_streams() { streams_age.fetch_add(1, std::memory_order_relaxed); }
void forget_kernels() { kernels_age.fetch_add(1, std::memory_order_relaxed); }

}  // namespace firebreak::guard
