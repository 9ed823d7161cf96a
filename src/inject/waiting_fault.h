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
                               std::span<const std::byte> staging);

/// In the context, which is made current.
Result<std::unique_ptr<Injection>> prepare_waiting(const cuda::Driver& driver,
                                                   const cuda::ContextView& context, QueueWork queue_work);

}  // namespace firebreak::inject
