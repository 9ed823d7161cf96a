// SPDX-License-Identifier: Apache-2.0
/// The context that a standby waits in. A context without limits takes 254 MiB of GPU memory or, with room
/// for stacks, 519; one with 2 to 8 multiprocessors and no such room 48 (H100, driver 580, under MPS).
#pragma once

#include "program/cuda/context.h"
#include "program/cuda/stream.h"

namespace firebreak::cuda {

struct SmallContext {
  Context context;
  bool is_small =
      false;  ///< false: the driver gives every context all multiprocessors, as it does outside of MPS
};

/// Current on the calling thread; `multiprocessors` is at least 1. Kernels with a stack make the driver
/// reserve room for it at their first launch.
Result<SmallContext> create_small_context(const Device& device, unsigned int multiprocessors);

/// The order goes from one context to another of the same process: what is queued in `to`, of `context`, from
/// now on comes after all that is queued in `from`, which the calling thread's context has. The call makes
/// `context` current. It waits for nothing. Device memory and registered host memory of the first context are
/// for both while that one lives; modules, kernels, streams and events are not.
Status go_on_in(const Stream& from, const ContextView& context, const Stream& to);

}  // namespace firebreak::cuda
