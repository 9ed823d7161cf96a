// SPDX-License-Identifier: Apache-2.0
/// The signs of life that a service manager wants of us. They come from the loop alone: a thread of their own
/// would give them while the loop hangs.
#pragma once

#include <memory>

#include "agent/service/service_manager.h"
#include "ground/base/clock.h"
#include "ground/os/event_loop.h"

namespace firebreak::agent {

/// Belongs to the loop's thread. Gives a sign after a whole turn of the loop, as often as there are turns and
/// four times in the manager's limit at most; and sees to it that there are turns.
class Pulse {
 public:
  /// None where the manager wants none. The references outlive it.
  static Result<std::unique_ptr<Pulse>> begin(os::EventLoop& loop, const Clock& clock,
                                              ServiceManager& manager);
  Pulse(const Pulse&) = delete;
  Pulse& operator=(const Pulse&) = delete;
  ~Pulse();

 private:
  Pulse(os::EventLoop& loop, const Clock& clock, ServiceManager& manager, Nanoseconds limit)
      : loop_(loop), clock_(clock), manager_(manager), limit_(limit), period_(limit / 4) {}
  void turned(Nanoseconds took);

  os::EventLoop& loop_;
  const Clock& clock_;
  ServiceManager& manager_;
  Nanoseconds limit_;
  Nanoseconds period_;
  Monotonic given_{};
  os::Watch turns_;
};

}  // namespace firebreak::agent
