// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

namespace firebreak::os {

/// Lets the calling thread go before all ordinary ones (SCHED_FIFO, the lowest priority of that class);
/// threads and processes that it starts are ordinary again. A thread that is woken beside clients that spin
/// for their GPU otherwise waits for the scheduler's next tick: on a machine with 16 cores one wake-up in
/// eight came up to 4 ms late (results/h100/characterization.json of commit 1b029f0bc422). For threads that
/// sleep nearly always. PermissionDenied: takes CAP_SYS_NICE or a limit on real-time priorities.
Status go_before_ordinary_threads();

}  // namespace firebreak::os
