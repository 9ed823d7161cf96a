// SPDX-License-Identifier: Apache-2.0
/// A fault of an engine other than the SMs: its target is unmapped while the work waits for its turn. The
/// driver checks addresses when work is queued, so this is the only way there.
#pragma once

#include "inject/kind.h"

namespace firebreak::inject {

/// Queues the work that will touch `target`, of which at least 1 MiB is mapped at that time.
using QueueWork = CUresult (*)(const cuda::Driver& driver, CUstream stream, CUdeviceptr target);

/// In the context, which is made current.
Result<std::unique_ptr<Injection>> prepare_waiting(const cuda::Driver& driver,
                                                   const cuda::ContextView& context, QueueWork queue_work);

}  // namespace firebreak::inject
