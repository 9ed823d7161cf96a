// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "guard/launch_words.h"

namespace firebreak::guard {

/// The driver's own function of that name; null where there is none.
void* real_symbol(const char* name);

/// The same, asked for once: for functions that are called often. Thread safe.
template <class Function>
class RealFunction {
 public:
  constexpr explicit RealFunction(const char* name) : name_(name) {}
  Function get() {
    Function function = found_.load(std::memory_order_relaxed);
    if (function != nullptr) return function;
    function = reinterpret_cast<Function>(real_symbol(name_));
    found_.store(function, std::memory_order_relaxed);
    return function;
  }

 private:
  const char* name_;
  std::atomic<Function> found_{nullptr};
};

/// The driver's own answer.
template <class Function, class... Arguments>
CUresult ask_driver(const char* name, Arguments... arguments) {
  const auto function = reinterpret_cast<Function>(real_symbol(name));
  return function == nullptr ? CUDA_ERROR_NOT_FOUND : function(arguments...);
}

/// Null where nothing is counted: without a driver.
LaunchWords* words_of_process();
/// The same, and null where nobody has asked for the driver in this process yet.
LaunchWords* existing_words();
/// From now on a stream's, or a kernel's, handle may mean another one.
void forget_streams();
void forget_kernels();

}  // namespace firebreak::guard
