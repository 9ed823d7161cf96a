// SPDX-License-Identifier: Apache-2.0
/// A limit for what processes do. The time for which one of them waits for a processor does not count, and
/// the limit begins anew whenever something is seen to go on: on a busy machine who is late need not be
/// stuck.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "ground/base/clock.h"
#include "ground/os/event_loop.h"
#include "ground/os/kernel.h"

namespace firebreak::agent {

/// Belongs to the loop's thread.
class RunLimit {
 public:
  struct Knows {
    os::EventLoop& loop;
    os::Kernel& kernel;
  };
  struct For {
    std::function<std::vector<pid_t>()> whom;  ///< of whom it is, now
    std::function<std::uint64_t()> seen;  ///< changes as long as something goes on; empty: that is not seen
  };
  RunLimit();
  RunLimit(RunLimit&&) noexcept;
  RunLimit& operator=(RunLimit&&) noexcept;
  ~RunLimit();

  /// Calls `over` once, unless it is cancelled or started anew before.
  void start(Knows knows, Milliseconds limit, For of, std::function<void()> over);
  void cancel();
  explicit operator bool() const { return under_way_ != nullptr; }

 private:
  struct UnderWay;

  std::unique_ptr<UnderWay> under_way_;
};

}  // namespace firebreak::agent
