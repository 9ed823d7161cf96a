// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <list>
#include <memory>
#include <set>
#include <vector>

#include "agent/faults/watch/page_fault.h"
#include "agent/faults/watch/target.h"
#include "agent/faults/watch/uvm_queue.h"
#include "ground/base/clock.h"
#include "ground/os/descriptors.h"
#include "ground/os/event_loop.h"
#include "ground/os/kernel.h"

namespace firebreak::watch {

struct UvmListenerOptions {
  /// Says whether to listen to page faults, too, which tell a copy engine's access from an SM's. Off, every
  /// fatal fault counts as replayable; on, each page fault of the target's managed memory wakes us.
  bool page_faults = false;
  /// Called for page faults where they are to be told; most are serviced, and a fatal one is told again as
  /// such.
  PageFaultCallback on_page_fault;
  /// Events that the driver dropped: a danger where one of a fatal fault may be among them.
  GapCallback on_gap = nullptr;
  /// Called once, when events of the target are heard.
  std::function<void()> on_attached;
  /// The target opens its descriptors when it likes: look again after this, twice as long each time, up to
  /// the longest.
  Nanoseconds first_retry = std::chrono::milliseconds(1);
  Nanoseconds longest_retry = std::chrono::milliseconds(20);
  /// One that has more descriptors than fit in a look (os::DescriptorScan) is looked at with such pauses, and
  /// all of them again only when their number has changed, or else after so many looks at that number.
  Nanoseconds between_looks = std::chrono::milliseconds(5);
  std::uint32_t most_glances = 15;
};

/// Turns the fatal UVM events of one process into faults: the earliest sign of a memory fault there is, and
/// the only one that always names the right process.
class UvmListener {
 public:
  struct Counters {
    std::uint64_t fatal_faults = 0;
    std::uint64_t page_faults = 0;  ///< number of page faults, when they are listened to
    std::uint64_t overflows = 0;    ///< the GPU's fault buffer was full: faults may have gone unseen
    std::uint64_t cpu_faults = 0;   ///< fatal ones, which are no GPU's
    std::uint64_t dropped = 0;      ///< number that the driver dropped, since we were slower than it
    std::uint64_t other = 0;        ///< events that were not asked for
  };

  UvmListener(os::EventLoop& loop, os::Kernel& kernel, const Clock& clock, Target target,
              UvmListenerOptions options, FaultCallback on_fault, EndCallback on_end);

  /// Attaches at once or as soon as the target has a VA space; ends (NotFound) when the target is gone. Fails
  /// at once with PermissionDenied or NotFound, in one line with what to do, when that can never work. Taking
  /// down the address space of a process that died while it was watched may fall to us: destruction may take
  /// milliseconds then.
  Status start();
  /// True when a queue is tied to the target, so that from here on no fault is missed.
  bool attached() const { return !attachments_.empty(); }
  /// Returns to how many VA spaces it is attached.
  std::size_t attachments() const { return attachments_.size(); }
  /// The target may have other VA spaces by now: it has several drivers, each with its own, and one that came
  /// may have the descriptor's number of one that has gone. So all are attached to anew, up to a number,
  /// beyond which the oldest ones are let go. An event of this moment may be told twice.
  void look_again();
  /// Listens to page faults too from now on, as with UvmListenerOptions::page_faults.
  Status listen_to_page_faults();
  /// The layout of the events; after attached().
  std::optional<UvmLayout> layout() const;
  /// Reports what waits in the queue, ahead of the loop.
  void read_now();
  /// The same, and listens no more. The driver keeps a target's address space for whoever listens to it, also
  /// when the target has ended.
  void stop();
  const Counters& counters() const { return counters_; }

 private:
  struct Attachment {
    UvmQueue queue;
    int number = -1;            ///< number of the target's descriptor
    std::uint64_t look = 0;     ///< the look that found it
    std::uint64_t dropped = 0;  ///< dropped events as counted so far
    std::uint64_t dropped_dangers = 0;
    os::Watch readable;
  };

  Status look_on();
  Status try_to_attach();
  Result<bool> look_for_candidates();
  bool is_large_and_as_it_was();
  bool is_known(int remote_number) const;
  void forget_gone(const std::vector<int>& numbers);
  void forget_before(const Attachment& newest);
  Status attach(int remote_number);
  Status retry_later();
  void retry();
  void target_is_gone();
  void drain(Attachment& attachment);
  void handle(UvmLayout layout, std::span<const std::byte> entry);
  void report(const UvmRecord& record);
  void note_page_fault(const UvmRecord& record);
  void note_overflow();
  void note_dropped(Attachment& attachment);
  fault::Fault fault_of(const UvmRecord& record) const;
  void let_go();
  void end(const Error& error);

  os::EventLoop& loop_;
  os::Kernel& kernel_;
  const Clock& clock_;
  Target target_;
  UvmListenerOptions options_;
  FaultCallback on_fault_;
  EndCallback on_end_;
  Counters counters_;
  Nanoseconds next_retry_{};
  std::optional<std::uint64_t> hub_fault_address_;  ///< the latest page fault from behind the hub
  std::optional<Error> distrust_;                   ///< why the events cannot be what we take them for
  os::Fd process_;
  os::Watch gone_;
  os::Watch retry_;
  os::DescriptorScan scan_;
  std::vector<int> candidates_;        ///< candidates of the scan that is under way, or was the last
  os::DescriptorCount count_;          ///< count as that scan began
  bool was_late_ = false;              ///< the last look: it is to be made again
  std::list<Attachment> attachments_;  ///< the oldest one first
  std::uint64_t look_ = 0;             ///< counts up when the target may have others under the same numbers
  std::set<int> no_va_spaces_;         ///< descriptors of the target that have turned out to be none
};

}  // namespace firebreak::watch
