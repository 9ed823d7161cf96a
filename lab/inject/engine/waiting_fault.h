// SPDX-License-Identifier: Apache-2.0
/// A fault of an engine other than the SMs: its target is unmapped while the work waits for its turn. The
/// driver checks addresses when work is queued, so this is the only way there.
#pragma once

#include <cstddef>
#include <span>

#include "inject/kind.h"

namespace firebreak::inject {

/// Queues the work that will touch `target`, mapped at that time and at least as large as `staging`, pinned
/// host memory.
using QueueWork = CUresult (*)(const cuda::Driver& driver, CUstream stream, CUdeviceptr target,
                               std::span<std::byte> staging);

/// Prepares it in the context, which is made current.
Prepared prepare_waiting(const cuda::ContextView& context, QueueWork queue_work);

/// The same as a Kind's `prepare`.
template <QueueWork queue_work>
Prepared prepare_waiting(const cuda::Driver&, const cuda::ContextView& context, const Options&) {
  return prepare_waiting(context, queue_work);
}

}  // namespace firebreak::inject
