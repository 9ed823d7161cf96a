// SPDX-License-Identifier: Apache-2.0
/// What the calling thread has made current: for the program, and in each instance.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "program/cuda/backend.h"
#include "program/virtual/instance.h"
#include "program/virtual/objects.h"

namespace firebreak::virtual_driver {

/// The contexts that a thread has pushed. It has a size, since it needs no destructor: what a program calls
/// while it ends comes after the destructors of its threads' variables.
class ContextStack {
 public:
  bool empty() const { return size_ == 0; }
  bool is_full() const { return size_ == contexts_.size(); }
  CUcontext back() const { return size_ == 0 ? nullptr : contexts_[size_ - 1]; }
  /// Nothing where it is full.
  void push_back(CUcontext context) {
    if (!is_full()) contexts_[size_++] = context;
  }
  void pop_back() { --size_; }

 private:
  std::array<CUcontext, 512> contexts_{};
  std::size_t size_ = 0;
};

/// What an instance has for the calling thread, as far as we know.
struct ThreadThere {
  static constexpr std::uintptr_t unknown = ~std::uintptr_t{0};
  static constexpr auto unknown_mode = static_cast<CUstreamCaptureMode>(-1);
  std::uint32_t life = 0;      ///< of the instance
  std::uintptr_t context = 0;  ///< that is current
  CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
};

/// What the calling thread made current.
struct Current {
  ContextStack stack;  ///< as the program calls them; the last one is current
  std::array<ThreadThere, slots_max> there{};
  CUcontext device_of = nullptr;  ///< the context whose device is known
  CUdevice device = 0;
  /// How the thread sees captures of others, as it has said.
  CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
};
static_assert(std::is_trivially_destructible_v<Current>);
Current& current();
inline ThreadThere& there_in(const Instance& instance) {
  ThreadThere& there = current().there[instance.slot()];
  if (there.life != instance.life()) [[unlikely]]
    there = {instance.life(), ThreadThere::unknown, ThreadThere::unknown_mode};
  return there;
}
/// What the program calls its current context; 0: none is.
inline std::uintptr_t current_context() { return number_of(current().stack.back()); }

/// On this thread nothing is current in that instance from here on.
inline void forget_current(const Instance& instance) {
  instance.driver().cuCtxSetCurrent(nullptr);
  there_in(instance).context = 0;
}

/// That context of the instance, or its own one, is current on this thread while this lives, and nothing is
/// after it.
class ContextScope {
 public:
  explicit ContextScope(const Instance& instance) : ContextScope(instance, instance.primary()) {}
  ContextScope(const Instance& instance, CUcontext context)
      : instance_(instance), is_current_(instance.driver().cuCtxSetCurrent(context) == CUDA_SUCCESS) {}
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;
  ~ContextScope() { forget_current(instance_); }
  bool is_current() const { return is_current_; }

 private:
  const Instance& instance_;
  bool is_current_;
};

}  // namespace firebreak::virtual_driver
