// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "agent/faults/strays/stray_watch.h"
#include "agent/faults/watch/watcher.h"

namespace firebreak::strays {

struct GuardCallbacks {
  /// Callbacks as StrayWatchCallbacks has them; either may be empty.
  std::function<void(const Stray&)> on_stray = nullptr;
  std::function<void(pid_t, const GuardReport&)> on_guard = nullptr;
};

/// The guard pages of whom a watch::Watcher follows: the one place where the two are wired. Make the watcher
/// with hear()'s callbacks, then attach() it. Lives on the loop's thread, at least as long as the watcher;
/// callbacks must not destroy it.
class GuardedWatch {
 public:
  GuardedWatch(os::EventLoop& loop, os::Kernel& kernel, GuardCallbacks callbacks,
               StrayWatchOptions options = {});
  GuardedWatch(const GuardedWatch&) = delete;
  GuardedWatch& operator=(const GuardedWatch&) = delete;

  /// Returns what the watcher is to call: the guard pages hear each event first, then `callbacks` do. While
  /// on_exit is told, guard_of() and summary_of() answer for the process as they did before.
  watch::WatcherCallbacks hear(watch::WatcherCallbacks callbacks);
  void attach(watch::Watcher& watcher) { watcher_ = &watcher; }

  /// A process that the watcher follows: its guard page is looked for until it ends.
  void follow(pid_t pid) { strays_.follow(pid); }
  /// The guard page, which outlives the process; null: none was found.
  std::shared_ptr<const guard::GuardView> guard_of(pid_t pid) const;
  /// Returns an empty summary where the process is not followed.
  Summary summary_of(pid_t pid) const;
  /// True when its guard could not be looked for, for want of descriptors; that is tried again and again.
  bool lacks(pid_t pid) const { return strays_.lacks(pid); }
  /// True when it has a guard, and its strays are heard.
  bool is_heard(pid_t pid) const { return strays_.is_heard(pid); }

 private:
  /// The process whose end is being told.
  struct Ended {
    pid_t pid = 0;
    std::shared_ptr<const guard::GuardView> guard;
    Summary summary;
  };

  watch::Watcher* watcher_ = nullptr;
  StrayWatch strays_;
  Ended ended_;
};

}  // namespace firebreak::strays
