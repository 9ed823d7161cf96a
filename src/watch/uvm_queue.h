// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "abi/uvm_tools.h"
#include "base/result.h"
#include "os/kernel.h"
#include "os/memory.h"

namespace firebreak::watch {

/// One event queue on one VA space of another process.
class UvmQueue {
 public:
  /// Entries in the queue: one page of them.
  static constexpr std::uint32_t entries = 64;

  /// Opens the tools node and ties a queue to `uvm_fd`, our duplicate of the target's descriptor, for the
  /// events in `event_types` (a mask). Unsupported when the descriptor is no VA space (yet).
  static Result<UvmQueue> open(os::Kernel& kernel, const os::Fd& uvm_fd, std::uint64_t event_types);

  /// Readable while events wait.
  const os::Fd& fd() const { return fd_; }
  /// Calls back with every event that waits, and takes them off the queue; returns how many.
  std::uint64_t drain(os::Kernel& kernel, const std::function<void(const abi::UvmEvent&)>& callback);
  /// Events of `type` that the driver dropped because the queue was full.
  std::uint64_t dropped(abi::UvmEventType type) const;

 private:
  UvmQueue(os::Mapping queue, os::Mapping control, os::Fd fd)
      : queue_(std::move(queue)), control_(std::move(control)), fd_(std::move(fd)) {}
  Status init(os::Kernel& kernel, const os::Fd& uvm_fd);
  Status enable(os::Kernel& kernel, std::uint64_t event_types);

  // The driver writes into the mappings until the descriptor is closed: the descriptor is destroyed first.
  os::Mapping queue_;
  os::Mapping control_;
  os::Fd fd_;
  std::uint32_t next_ = 0;
};

}  // namespace firebreak::watch
