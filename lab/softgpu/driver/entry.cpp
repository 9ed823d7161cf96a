// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/entry.h"

#include <pthread.h>

#include <cstdlib>

namespace firebreak::softgpu::driver {

namespace {

thread_local bool null_is_own_stream = false;

}  // namespace

PerThreadDefault::PerThreadDefault() : before_(std::exchange(null_is_own_stream, true)) {}
PerThreadDefault::~PerThreadDefault() { null_is_own_stream = before_; }

/// The stack of each thread until its end, and of the first one for ever: what a program calls while it ends
/// comes after the destructors of its threads' variables.
std::vector<CUcontext>& context_stack() {
  using Stack = std::vector<CUcontext>;
  static const pthread_key_t key = [] {
    pthread_key_t made = 0;
    if (::pthread_key_create(&made, [](void* stack) { delete static_cast<Stack*>(stack); }) != 0)
      std::abort();
    return made;
  }();
  auto* stack = static_cast<Stack*>(::pthread_getspecific(key));
  if (stack != nullptr) return *stack;
  stack = new Stack;
  if (::pthread_setspecific(key, stack) != 0) std::abort();
  return *stack;
}

CUcontext current_context() {
  const auto& stack = context_stack();
  return stack.empty() ? nullptr : stack.back();
}

StreamAndContext find_stream(Process& process, CUstream handle) {
  if (handle == nullptr && null_is_own_stream)
    handle = reinterpret_cast<CUstream>(CU_STREAM_PER_THREAD_AS_INT);
  const std::shared_ptr<Context> current = process.contexts().find(current_context());
  if (!current) return {};
  if (auto stream = current->find_stream(handle)) return {std::move(stream), current};
  for (const auto& context : process.contexts().all()) {
    if (context == current) continue;
    if (auto stream = context->find_stream(handle)) return {std::move(stream), context};
  }
  return {};
}

}  // namespace firebreak::softgpu::driver
