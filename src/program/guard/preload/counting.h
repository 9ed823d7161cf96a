// SPDX-License-Identifier: Apache-2.0
/// How the functions in the driver's place count the work that they give to the GPU. Nothing here waits or
/// asks Linux for anything, but for a thread's first work in a stream.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "program/guard/completion_markers.h"
#include "program/guard/preload/process_guard.h"
#include "shared/abi/cuda_api.h"
#include "shared/abi/cuda_driver_functions.h"

namespace firebreak::guard {

struct KnownStream {
  CUstream stream;
  std::uint64_t age;  ///< 0: nothing is known
  abi::GuardLaunches* slot;
};
struct KnownName {
  const void* handle;  ///< handle of a kernel, or the name itself
  std::uint64_t age;
  std::uint16_t index;
};
/// Plain data, so that no access asks whether it was constructed.
struct Known {
  std::array<KnownStream, 8> streams;  ///< streams of functions with the legacy default stream
  std::array<KnownStream, 8> per_thread_streams;
  std::array<KnownName, 16> names;
};

/// Ages of handles: what a thread remembers of a stream's slot, or of a name, holds as long as its number is
/// this one. Relaxed: who may use a handle has heard of it from whoever destroyed the one before.
extern std::atomic<std::uint64_t> streams_age;
extern std::atomic<std::uint64_t> kernels_age;
/// It has no TLS model of its own: one that is faster needs static room, and the dynamic linker has none left
/// under LD_AUDIT.
extern constinit thread_local Known known;

/// All that was begun in it has ended, if the driver says so.
CUresult ended_with(abi::GuardLaunches* slot, CUresult result);
abi::GuardLaunches* find_slot(CUstream stream, bool per_thread, KnownStream& entry);
std::uint16_t find_kernel(CUfunction function, KnownName& entry);
std::uint16_t find_call(const char* name, KnownName& entry);
/// Work was given that is not counted.
void note_uncounted();
/// These make a stream's, or a kernel's, handle possibly mean another one, from now on.
void forget_streams();
void forget_kernels();

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

// ---- What a function's arguments say of its work ----

inline CUstream stream_in(CUstream stream) { return stream; }
inline CUstream stream_in(const CUlaunchConfig* config) {
  return config == nullptr ? nullptr : config->hStream;
}
template <class Argument>
inline constexpr bool says_stream =
    std::is_same_v<Argument, CUstream> || std::is_same_v<Argument, const CUlaunchConfig*>;
template <class Argument>
inline constexpr bool says_kernel = std::is_same_v<Argument, CUfunction>;

/// The first that says which stream; null: none does.
inline CUstream stream_among() { return nullptr; }
template <class First, class... Rest>
CUstream stream_among(First first, Rest... rest) {
  if constexpr (says_stream<First>) {
    return stream_in(first);
  } else {
    return stream_among(rest...);
  }
}

inline CUfunction kernel_among() { return nullptr; }
template <class First, class... Rest>
CUfunction kernel_among(First first, Rest... rest) {
  if constexpr (says_kernel<First>) {
    return first;
  } else {
    return kernel_among(rest...);
  }
}

/// Such a copy writes to the host and names no stream: it has ended when it returns, and what was in its
/// stream before.
template <class... Arguments>
inline constexpr bool returns_when_done = false;
template <class... Rest>
inline constexpr bool returns_when_done<void*, Rest...> = !(says_stream<Rest> || ...);

/// Asks the driver's function, and counts that as work of the stream that the arguments name. Copies and
/// fills that name none work in the default stream; `per_thread`: that of the calling thread. Of anything
/// else that names none nobody knows where it works: then the page says that it does not tell everything.
/// `symbol` is a literal.
template <bool per_thread, abi::CudaPurpose purpose, class... Arguments>
[[gnu::always_inline]] inline CUresult count(CUresult (*function)(Arguments...), const char* symbol,
                                             std::type_identity_t<Arguments>... arguments) {
  constexpr bool in_default_stream =
      purpose == abi::CudaPurpose::Copies || purpose == abi::CudaPurpose::Fills;
  if constexpr ((says_stream<Arguments> || ...) || in_default_stream) {
    abi::GuardLaunches* const slot = slot_of<per_thread>(stream_among(arguments...));
    std::uint16_t name = 0;
    if constexpr ((says_kernel<Arguments> || ...)) {
      const CUfunction kernel = kernel_among(arguments...);
      if (slot != nullptr && kernel != nullptr) name = name_of(kernel, &find_kernel);
    } else {
      if (slot != nullptr) name = name_of(symbol, &find_call);
    }
    const Launch launch(slot, name);
    if constexpr (purpose == abi::CudaPurpose::Copies && returns_when_done<Arguments...>) {
      return ended_with(slot, function(arguments...));
    } else {
      return function(arguments...);
    }
  } else {
    note_uncounted();
    return function(arguments...);
  }
}

}  // namespace firebreak::guard
