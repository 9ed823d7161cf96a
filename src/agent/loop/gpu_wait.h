// SPDX-License-Identifier: Apache-2.0
/// An agent that was started before the GPU's driver: it serves nobody yet, and says so to all who ask.
#pragma once

#include <functional>
#include <string>

#include "agent/loop/server.h"
#include "agent/service/service_manager.h"
#include "ground/base/clock.h"
#include "ground/os/event_loop.h"

namespace firebreak::agent {

/// How often it looks for the GPU.
inline constexpr Milliseconds gpu_look_period{500};

/// Runs `loop` until `is_there` says that there is a GPU; tells the log, `manager` and whoever asks at
/// `sockets` what is missing. False: something else stopped the loop first.
Result<bool> wait_for_gpu(os::EventLoop& loop, ServiceManager& manager, const Sockets& sockets,
                          const std::function<Status()>& is_there, Milliseconds period = gpu_look_period);

}  // namespace firebreak::agent
