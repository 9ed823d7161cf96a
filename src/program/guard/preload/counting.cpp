// SPDX-License-Identifier: Apache-2.0
#include "program/guard/preload/counting.h"

#include <string>

#include "ground/os/self.h"

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
    CompletionMarkers* const markers = wanted ? existing_markers() : nullptr;
    if (markers != nullptr) markers->log().thread_ended(reinterpret_cast<WorkLog::Thread>(&known));
  }
};
thread_local ThreadEnd thread_end;

void stop_markers() {
  if (CompletionMarkers* const markers = existing_markers()) markers->stop();
}

}  // namespace

[[gnu::noinline]] abi::GuardLaunches* find_slot(CUstream stream, bool per_thread, KnownStream& entry) {
  const std::uint64_t age = streams_age.load(std::memory_order_relaxed);
  CompletionMarkers* const markers = markers_of_process();
  if (markers == nullptr) {
    entry = {stream, age, nullptr};
    return nullptr;
  }
  static const bool prepared = [] {
    os::run_at_exit(&stop_markers);
    return true;
  }();
  thread_end.wanted = prepared;
  abi::GuardLaunches* const slot =
      markers->slot(reinterpret_cast<WorkLog::Thread>(&known), stream, per_thread);
  if (slot != nullptr || markers->log().is_full()) entry = {stream, age, slot};
  return slot;
}

[[gnu::noinline]] std::uint16_t find_kernel(CUfunction function, KnownName& entry) {
  CompletionMarkers* const markers = markers_of_process();
  if (markers == nullptr) return 0;
  const std::uint64_t age = kernels_age.load(std::memory_order_relaxed);
  entry = {function, age, markers->kernel(function)};
  return entry.index;
}

[[gnu::noinline]] std::uint16_t find_call(const char* name, KnownName& entry) {
  CompletionMarkers* const markers = markers_of_process();
  if (markers == nullptr) return 0;
  const std::uint64_t age = kernels_age.load(std::memory_order_relaxed);
  entry = {name, age, markers->log().kernel(std::string(name) + "()")};
  return entry.index;
}

CUresult ended_with(abi::GuardLaunches* slot, CUresult result) {
  CompletionMarkers* const markers = slot == nullptr || result != CUDA_SUCCESS ? nullptr : existing_markers();
  if (markers != nullptr) markers->log().all_begun_ended(*slot);
  return result;
}

void note_uncounted() {
  CompletionMarkers* const markers = markers_of_process();
  if (markers != nullptr) markers->log().note_gap(abi::GuardWorkUncounted);
}

void forget_streams() { streams_age.fetch_add(1, std::memory_order_relaxed); }
void forget_kernels() { kernels_age.fetch_add(1, std::memory_order_relaxed); }

}  // namespace firebreak::guard
