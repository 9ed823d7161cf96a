// SPDX-License-Identifier: Apache-2.0
/// Copies between the GPU and the host's memory, on several threads: the GPU writes to memory that is pinned,
/// and the program's is not, so each byte is copied once more by a processor.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "ground/base/result.h"
#include "program/cuda/backend.h"
#include "program/rest/host_content.h"

namespace firebreak::rest {

enum class Direction { ToHost, ToGpu };

/// The driver by which it is done.
struct CopyBy {
  const cuda::Backend& driver;
  CUcontext context = nullptr;
  /// Starts a thread that may call the driver.
  std::function<Status(std::function<void()>)> start_thread;
  /// Somebody wants it to stop in the middle.
  const std::atomic<bool>& is_to_stop;
};

/// Returns once all is copied, or the first error: CUDA_ERROR_OUT_OF_MEMORY also where the host's memory came
/// to its end meanwhile, and CUDA_ERROR_DEINITIALIZED where it was to stop. Leaves nothing current on the
/// calling thread.
CUresult copy_all(const CopyBy& by, const HostContent& content, Direction direction);

}  // namespace firebreak::rest
