// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>

#include "base/clock.h"
#include "os/event_loop.h"
#include "os/kernel.h"
#include "watch/target.h"
#include "watch/uvm_queue.h"

namespace firebreak::watch {

struct UvmDetectorOptions {
  /// Also listen to serviced page faults, which alone tell a copy engine's access from an SM's. Off, every
  /// fatal fault counts as replayable; on, each page fault of the target's managed memory wakes us.
  bool page_faults = false;
  /// The target opens its descriptors when it likes: look again after this, twice as long each time, up to
  /// the longest.
  Nanoseconds first_retry = std::chrono::milliseconds(1);
  Nanoseconds longest_retry = std::chrono::milliseconds(20);
};

/// Turns the fatal UVM events of one process into faults: the earliest sign of a memory fault there is, and
/// the only one that always names the right process.
class UvmDetector {
 public:
  struct Counters {
    std::uint64_t fatal_faults = 0;
    std::uint64_t page_faults = 0;  ///< serviced ones, when they are listened to
    std::uint64_t other = 0;        ///< events that were not asked for or make no sense
  };

  UvmDetector(os::EventLoop& loop, os::Kernel& kernel, const Clock& clock, Target target,
              UvmDetectorOptions options, FaultCallback on_fault, EndCallback on_end);

  /// Attaches at once or as soon as the target has a VA space; ends (NotFound) when the target is gone. Fails
  /// at once with PermissionDenied or NotFound, in one line with what to do, when that can never work. Taking
  /// down the address space of a process that died while it was watched may fall to us: destruction may take
  /// milliseconds then.
  Status start();
  /// Whether a queue is tied to the target, so that from here on no fault is missed.
  bool attached() const { return !attachments_.empty(); }
  /// Reports what waits in the queue, ahead of the loop.
  void read_now();
  const Counters& counters() const { return counters_; }

 private:
  struct Attachment {
    UvmQueue queue;
    os::Watch readable;
  };

  Status try_to_attach();
  Result<std::vector<int>> candidates();
  Status attach(int remote_number);
  Status retry_later();
  void retry();
  void target_is_gone();
  void handle(const abi::UvmEvent& event);
  void report(const abi::UvmFatalFault& info);
  void let_go();
  void end(const Error& error);

  os::EventLoop& loop_;
  os::Kernel& kernel_;
  const Clock& clock_;
  Target target_;
  UvmDetectorOptions options_;
  FaultCallback on_fault_;
  EndCallback on_end_;
  Counters counters_;
  Nanoseconds next_retry_{};
  std::optional<std::uint64_t> hub_fault_address_;  ///< the latest page fault from behind the hub
  os::Fd process_;
  os::Watch gone_;
  os::Watch retry_;
  std::deque<Attachment> attachments_;
};

}  // namespace firebreak::watch
