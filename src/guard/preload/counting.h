// SPDX-License-Identifier: Apache-2.0
/// How the functions in the driver's place count the work that they give to the GPU. Nothing here waits or
/// asks Linux for anything, but for a thread's first work in a stream.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "abi/cuda_driver_functions.h"
#include "guard/launch_words.h"
#include "guard/preload/real_function.h"

namespace firebreak::guard {

struct KnownStream {
  CUstream stream;
  std::uint64_t age;  ///< 0: nothing is known
  abi::GuardLaunches* slot;
};
struct KnownName {
  const void* handle;  ///< of a kernel, or the name itself
  std::uint64_t age;
  std::uint16_t index;
};
/// Plain data, so that no access asks whether it was constructed.
struct Known {
  std::array<KnownStream, 8> streams;  ///< of functions with the legacy default stream
  std::array<KnownStream, 8> per_thread_streams;
  std::array<KnownName, 16> names;
};

/// What a thread remembers holds as long as its number is this one: of a stream's slot, and of a name.
/// Relaxed: who may use a handle has heard of it from whoever destroyed the one before.
extern std::atomic<std::uint64_t> streams_age;
extern std::atomic<std::uint64_t> kernels_age;
[[gnu::tls_model("initial-exec")]] extern constinit thread_local Known known;

abi::GuardLaunches* find_slot(CUstream stream, bool per_thread, KnownStream& entry);
std::uint16_t find_kernel(CUfunction function, KnownName& entry);
std::uint16_t find_call(const char* name, KnownName& entry);

inline std::size_t place(const void* handle, std::size_t places) {
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  return (number >> 4 ^ number >> 9) % places;
}

template <bool per_thread>
abi::GuardLaunches* slot_of(CUstream stream) {
  auto& all = per_thread ? known.per_thread_streams : known.streams;
  KnownStream& entry = all[place(stream, all.size())];
  const bool is_it = entry.stream == stream && entry.age == streams_age.load(std::memory_order_relaxed);
  return is_it ? entry.slot : find_slot(stream, per_thread, entry);
}

template <class Handle, class Find>
std::uint16_t name_of(Handle handle, const Find& find) {
  KnownName& entry = known.names[place(handle, known.names.size())];
  const bool is_it = entry.handle == handle && entry.age == kernels_age.load(std::memory_order_relaxed);
  return is_it ? entry.index : find(handle, entry);
}

/// One piece of work: begun when it is made, launched at its end. Only this thread counts in the slot, so
/// plain loads and stores suffice; released, so that whoever sees a number sees what was stored before.
class Launch {
 public:
  Launch(abi::GuardLaunches* slot, std::uint16_t name) : slot_(slot) {
    if (slot_ == nullptr) return;
    const std::uint32_t before = slot_->begun.load(std::memory_order_relaxed);
    slot_->kernel[before % abi::guard_launches_kept].store(name, std::memory_order_relaxed);
    slot_->begun.store(before + 1, std::memory_order_release);
  }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;
  ~Launch() {
    if (slot_ != nullptr)
      slot_->launched.store(slot_->launched.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

 private:
  abi::GuardLaunches* slot_;
};

/// A name as an argument of a template.
template <std::size_t size>
struct Name {
  char text[size];
  // Not explicit: it is written as the text alone.
  consteval Name(const char (&from)[size]) { std::copy_n(from, size, text); }
};

template <Name symbol, bool per_thread, class... Arguments>
CUresult count_work(CUstream stream, Arguments... arguments) {
  static constinit RealFunction<CUresult (*)(Arguments...)> real{symbol.text};
  const auto function = real.get();
  if (function == nullptr) return CUDA_ERROR_NOT_FOUND;
  abi::GuardLaunches* const slot = slot_of<per_thread>(stream);
  const char* const name = symbol.text;
  const Launch launch(slot, slot == nullptr ? std::uint16_t{0} : name_of(name, &find_call));
  return function(arguments...);
}

/// The driver's function of that name, counted as work of that stream; null: of the default stream.
template <Name symbol, class... Arguments>
CUresult counted(CUstream stream, Arguments... arguments) {
  return count_work<symbol, false>(stream, arguments...);
}
/// The same where null means the calling thread's own default stream.
template <Name symbol, class... Arguments>
CUresult counted_per_thread(CUstream stream, Arguments... arguments) {
  return count_work<symbol, true>(stream, arguments...);
}

}  // namespace firebreak::guard
