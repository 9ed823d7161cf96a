// SPDX-License-Identifier: Apache-2.0
/// The driver that this process's own calls reach behind the guard: the loaded one, or the virtual one that
/// is made of several.
#pragma once

#include <atomic>

#include "program/cuda/backend.h"
#include "program/cuda/driver.h"

namespace firebreak::guard {

/// Answers a thread's questions to the dynamic linker with the driver's own functions, while one lives there:
/// the guard's own use of the driver is not guarded.
class Bypass {
 public:
  Bypass();
  Bypass(const Bypass&) = delete;
  Bypass& operator=(const Bypass&) = delete;
  ~Bypass();
  static bool active();

 private:
  bool before_;
};

/// Found once, and then the same until the process's end, also in children of fork(). Thread safe.
class ProcessDriver {
 public:
  /// Returns all its functions. Where there is no driver all of them answer CUDA_ERROR_NOT_FOUND.
  static const cuda::Backend& functions() {
    if (!found_.load(std::memory_order_acquire)) [[unlikely]]
      find(nullptr);
    return functions_;
  }

  /// The loaded library. The first call decides which one it is: that of the driver's function `part_of`,
  /// else the one that cuda::Driver finds. Null: there is none, or one too old to be guarded.
  static const cuda::Driver* library(const void* part_of);

  /// The driver that the program sees: the library, or the virtual one in front of it. Null as library().
  static const cuda::Driver* seen(const void* part_of);

  /// Begins anew in a child of fork(): another thread of the parent may have been looking.
  static void begin_anew();

 private:
  static void find(const void* part_of);

  static std::atomic<bool> found_;  ///< set with release once the next is whole
  static cuda::Backend functions_;
};

}  // namespace firebreak::guard
