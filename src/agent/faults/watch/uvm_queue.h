// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "agent/faults/watch/uvm_record.h"
#include "ground/base/result.h"
#include "ground/os/kernel.h"
#include "ground/os/memory.h"
#include "shared/abi/uvm_tools.h"

namespace firebreak::watch {

/// One event queue on one VA space of another process.
class UvmQueue {
 public:
  /// Entries in the queue. A page has eight times as many bytes and entries are multiples of 8 bytes, so the
  /// driver, which pins exactly the queue, needs exactly entry_bytes / 8 pages: a page less is refused, and
  /// with a page more behind it that nobody may touch, so is an entry that is longer than we think.
  static constexpr std::uint32_t entries = 512;

  /// Opens the tools node and ties a queue to `uvm_fd`, our duplicate of the target's descriptor, for the
  /// events in `event_types` (a mask): in the second layout where the driver has it, else in the first.
  /// Unsupported when the descriptor is no VA space (yet); Protocol when the driver's entries have another
  /// size than either layout.
  static Result<UvmQueue> open(os::Kernel& kernel, const os::Fd& uvm_fd, std::uint64_t event_types);

  /// Says whether this machine has queues for us at all; why not, in one line with what to do.
  static Status offered(os::Kernel& kernel);

  /// Listens to events of these types (a mask) too, from now on.
  Status listen_to(os::Kernel& kernel, std::uint64_t event_types);

  UvmLayout layout() const { return layout_; }
  /// Readable while events wait.
  const os::Fd& fd() const { return fd_; }
  /// Calls back with every entry that waits, and takes them off the queue; returns how many. Protocol when an
  /// index is out of the queue's range: then the driver's control structure is another one.
  Result<std::uint64_t> drain(os::Kernel& kernel,
                              const std::function<void(std::span<const std::byte>)>& callback);
  /// Events, of any type, that the driver dropped because the queue was full.
  std::uint64_t dropped() const;
  /// Returns the number for these types (a mask) alone.
  std::uint64_t dropped(std::uint64_t event_types) const;

 private:
  UvmQueue(os::Mapping control, os::Fd fd) : control_(std::move(control)), fd_(std::move(fd)) {}
  Status init(os::Kernel& kernel, const os::Fd& uvm_fd);
  Result<bool> try_layout(os::Kernel& kernel, const os::Fd& uvm_fd, UvmLayout layout);

  // The driver writes into the mappings until the descriptor is closed: the descriptor is destroyed first.
  UvmLayout layout_ = UvmLayout::V1;
  os::Mapping queue_;
  os::Mapping control_;
  os::Fd fd_;
  std::uint32_t next_ = 0;
};

}  // namespace firebreak::watch
