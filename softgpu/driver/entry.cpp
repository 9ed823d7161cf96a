// SPDX-License-Identifier: Apache-2.0
#include "softgpu/driver/entry.h"

namespace firebreak::softgpu::driver {

std::vector<CUcontext>& context_stack() {
  thread_local std::vector<CUcontext> stack;
  return stack;
}

CUcontext current_context() {
  const auto& stack = context_stack();
  return stack.empty() ? nullptr : stack.back();
}

StreamAndContext find_stream(Process& process, CUstream handle) {
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
