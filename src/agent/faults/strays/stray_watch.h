// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "agent/faults/strays/stray.h"
#include "agent/faults/strays/stray_book.h"
#include "agent/faults/watch/page_fault.h"
#include "ground/base/clock.h"
#include "ground/os/descriptors.h"
#include "ground/os/event_loop.h"
#include "ground/os/kernel.h"
#include "shared/guard_page/guard_view.h"

namespace firebreak::strays {

struct StrayWatchOptions {
  /// A fatal fault comes this soon after the page fault that it is; until then nobody is told of a stray.
  Nanoseconds confirmation = std::chrono::microseconds(300);
  /// A guard page appears when its process likes: look again after this, twice as long each time, up to the
  /// longest; its state is read again as often.
  Nanoseconds first_pause = std::chrono::milliseconds(1);
  Nanoseconds longest_pause = std::chrono::seconds(2);
  /// A process without a guard page, at the longest pause, is looked through only when the number of its
  /// descriptors has changed, and otherwise after so many looks at that number: it may have closed one and
  /// opened another. Where Linux does not count (before 6.2) that is each time.
  std::uint32_t most_glances = 15;
  /// Pause between two looks at a process that has more descriptors than fit in one (os::DescriptorScan).
  Nanoseconds between_looks = std::chrono::milliseconds(5);
};

struct StrayWatchCallbacks {
  /// The first stray of a process in a block of 2 MiB.
  std::function<void(const Stray&)> on_stray;
  /// A guard page was found, or says something else now.
  std::function<void(pid_t, const GuardReport&)> on_guard;
  /// Page faults of this process are wanted from now on. Returns whether they are heard; if not yet, it is
  /// asked again.
  std::function<bool(pid_t)> on_listen;
};

/// Finds the guard pages of followed processes, and tells their strays from their other page faults. A
/// watch::Watcher brings the events. Lives on the loop's thread; callbacks must not destroy it.
class StrayWatch {
 public:
  StrayWatch(os::EventLoop& loop, os::Kernel& kernel, StrayWatchOptions options,
             StrayWatchCallbacks callbacks)
      : loop_(loop), kernel_(kernel), options_(options), callbacks_(std::move(callbacks)) {}
  StrayWatch(const StrayWatch&) = delete;
  StrayWatch& operator=(const StrayWatch&) = delete;

  /// Follows a process from now on, until forget(). One whose descriptors are not ours to see has no guard
  /// for us.
  void follow(pid_t pid);
  /// Forgets a process that has ended. Strays that wait to be confirmed are told first; then, what is known
  /// of it.
  Summary forget(pid_t pid);
  /// Tells that the process uses the GPU from now on, so its guard page is there or is about to be.
  void expect_guard(pid_t pid);

  void note_page_fault(const watch::PageFault& page_fault);
  /// Takes any signal: the fatal ones of UVM tell that an access was not contained.
  void note_signal(const fault::Fault& signal);

  /// The guard page of a followed process, which outlives both; null: none was found.
  std::shared_ptr<const guard::GuardView> guard_of(pid_t pid) const;
  /// Returns an empty summary where the process is not followed.
  Summary summary_of(pid_t pid) const;
  /// True when its guard could not be looked for, for want of descriptors; that is tried again and again.
  bool lacks(pid_t pid) const;
  /// True when it has a guard, and its strays are heard.
  bool is_heard(pid_t pid) const;

 private:
  struct Followed {
    os::Fd process;  ///< none: there was no descriptor for it
    bool lacks = false;
    std::shared_ptr<const guard::GuardView> guard;
    bool is_heard = false;
    std::optional<GuardReport> told;
    StrayBook book;
    Nanoseconds pause{};
    os::DescriptorScan scan;
    std::size_t closer_looks = 0;  ///< looks at what was called a guard page, in that scan
    os::DescriptorCount count;     ///< count of those that were looked through, and none was a guard page
    os::Watch next_look;
    os::Watch confirmation;
  };

  void look(pid_t pid);
  void look_later(pid_t pid, Followed& followed);
  bool is_as_it_was(pid_t pid, Followed& followed) const;
  Status look_for_guard(pid_t pid, Followed& followed);
  Status find_guard(pid_t pid, Followed& followed);
  void tell_guard(pid_t pid, Followed& followed);
  void confirm_later(pid_t pid, Followed& followed);
  void confirm(pid_t pid);
  void tell_strays(Followed& followed);

  os::EventLoop& loop_;
  os::Kernel& kernel_;
  StrayWatchOptions options_;
  StrayWatchCallbacks callbacks_;
  std::map<pid_t, Followed> followed_;
};

}  // namespace firebreak::strays
