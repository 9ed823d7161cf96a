// SPDX-License-Identifier: Apache-2.0
/// The beginning of every entry point: is the driver initialised, did a fault end it, which context is
/// current.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "shared/abi/cuda_driver_prototypes.h"
#include "softgpu/driver/process.h"

namespace firebreak::softgpu::driver {

/// The calling thread's stack of contexts; the last one is current.
std::vector<CUcontext>& context_stack();
/// Null when none is current.
CUcontext current_context();

/// Makes null mean the thread's own default stream, while this lives there.
class PerThreadDefault {
 public:
  PerThreadDefault();
  PerThreadDefault(const PerThreadDefault&) = delete;
  PerThreadDefault& operator=(const PerThreadDefault&) = delete;
  ~PerThreadDefault();

 private:
  bool before_;
};

/// Serves functions that work without a context, and after a fault.
template <class Action>
CUresult with_process(Action&& action) {
  Process* process = Process::current();
  return process == nullptr ? CUDA_ERROR_NOT_INITIALIZED : std::forward<Action>(action)(*process);
}

/// Serves functions that work without a context, but not after a fault.
template <class Action>
CUresult with_live_process(Action&& action) {
  return with_process([&](Process& process) {
    const CUresult sticky = process.control().sticky_error();
    if (sticky != CUDA_SUCCESS) return sticky;
    const CUresult of_core_dump = process.core_dump_mode().take_error();
    return of_core_dump != CUDA_SUCCESS ? of_core_dump : std::forward<Action>(action)(process);
  });
}

/// Serves functions that need a current context.
template <class Action>
CUresult with_context(Action&& action) {
  return with_live_process([&](Process& process) {
    const CUcontext handle = current_context();
    const std::shared_ptr<Context> context = process.contexts().find(handle);
    if (!context) return handle == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return std::forward<Action>(action)(process, *context);
  });
}

/// A stream and the context it belongs to.
struct StreamAndContext {
  std::shared_ptr<Stream> stream;
  std::shared_ptr<Context> context;
};
/// Looks in the current context first; empty stream when the handle is none.
StreamAndContext find_stream(Process& process, CUstream handle);

/// Serves functions that work on a stream.
template <class Action>
CUresult with_stream(CUstream handle, Action&& action) {
  return with_live_process([&](Process& process) {
    if (current_context() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    const StreamAndContext found = find_stream(process, handle);
    if (!found.stream) return CUDA_ERROR_INVALID_HANDLE;
    return std::forward<Action>(action)(process, *found.context, found.stream);
  });
}

/// Stores an answer through the program's pointer, or answers its error.
template <class To, class From>
CUresult store(To* into, const Answer<From>& answer) {
  if (!answer) return answer.error();
  if (into == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *into = static_cast<To>(*answer);
  return CUDA_SUCCESS;
}

}  // namespace firebreak::softgpu::driver
